#include "init/files.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "init/reply.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

enum { PATH_SIZE = 4097, PARENT_MODE = 0755, READ_AT_ONCE = 65536, WRITE_AT_ONCE = 1 << 20 };

static uint8_t bytes[WRITE_AT_ONCE];

int files_open_parent(struct wire_str path, int *ret_folder, const char **ret_name)
{
    static char copy[PATH_SIZE];
    size_t length = path.length;

    memcpy(copy, path.text, length + 1);
    while (length > 0 && copy[length - 1] == '/')
        copy[--length] = '\0';
    char *slash = strrchr(copy, '/');
    const char *name = slash != NULL ? slash + 1 : copy;
    if (name[0] == '\0')
        return path.length == 0 ? -ENOENT : -EBUSY; /* the root itself */
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return -EINVAL;
    const char *folder = slash == NULL ? "." : slash == copy ? "/" : copy;
    if (slash != NULL)
        *slash = '\0';
    int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    *ret_folder = fd;
    *ret_name = name;
    return 0;
}

void files_free_name(char name[FILES_FREE_NAME])
{
    (void)snprintf(name, FILES_FREE_NAME, ".hutch-%d-%llx", getpid(), (unsigned long long)clock_now_ns());
}

/* Every folder above the last name, as far as they are missing. */
static int make_parents(struct wire_str path)
{
    static char copy[PATH_SIZE];

    memcpy(copy, path.text, path.length + 1);
    size_t end = path.length;
    while (end > 0 && copy[end - 1] == '/')
        end--;
    for (size_t i = 1; i < end; i++) {
        if (copy[i] != '/')
            continue;
        copy[i] = '\0';
        if (mkdir(copy, PARENT_MODE) < 0 && errno != EEXIST)
            return -errno;
        copy[i] = '/';
    }
    return 0;
}

/* Should a parent be missing and is it wanted: make it, and say so. */
static bool has_made_parents(int error, const struct wire_file *file, struct wire_str path)
{
    return error == ENOENT && (file->flags & WIRE_FILE_PARENTS) != 0 && make_parents(path) == 0;
}

static int check_is_file(mode_t mode)
{
    return S_ISREG(mode) ? 0 : S_ISDIR(mode) ? -EISDIR : -ENXIO;
}

static bool is_of_proc(int fd)
{
    struct statfs fs;

    return fstatfs(fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

/*
 * Of what /proc has about this very process: a link to /proc/self leads there, and what it shows, such as where our
 * memory lies, is that of init.
 */
static bool is_about_us(int fd)
{
    char link[32];
    char own[32] = "/proc/";
    char path[64];

    ssize_t length = readlink("/proc/self", own + 6, sizeof own - 7);
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path);
    return length > 0 && n > 6 + length && memcmp(path, own, 6 + (size_t)length) == 0 && path[6 + length] == '/';
}

/* Never waits: O_NONBLOCK for a FIFO, O_NOCTTY for a terminal. What it is not is found out once it is open. */
static int open_file(const char *path, int flags, mode_t mode, struct stat *ret_st)
{
    int fd = open(path, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, mode);

    if (fd < 0)
        return -errno;
    int r = fstat(fd, ret_st) < 0 ? -errno : check_is_file(ret_st->st_mode);
    if (r == 0 && is_of_proc(fd) && is_about_us(fd))
        r = -EACCES;
    if (r < 0) {
        (void)close(fd);
        return r;
    }
    return fd;
}

/* How many bytes there are to read. */
static uint64_t extent(const struct wire_file *file, int fd, const struct stat *st)
{
    uint64_t size = (uint64_t)st->st_size;

    if ((file->flags & WIRE_FILE_GROWING) != 0 || (size == 0 && is_of_proc(fd)))
        return file->length;
    uint64_t there = size > file->offset ? size - file->offset : 0;
    return there < file->length ? there : file->length;
}

int files_read(const struct wire_file *file)
{
    struct stat st = {0};
    _cleanup_fd_ int fd = open_file(file->path.text, O_RDONLY, 0, &st);

    if (fd < 0)
        return fd;
    if (file->offset > 0 && lseek(fd, (off_t)file->offset, SEEK_SET) < 0)
        return -errno;
    int r = reply_entry(&st, "", "");
    if (r == 0)
        r = reply_flush();
    for (uint64_t left = extent(file, fd, &st); r == 0 && left > 0;) {
        ssize_t n = read(fd, bytes, left < READ_AT_ONCE ? (size_t)left : READ_AT_ONCE);
        if (n <= 0)
            return n < 0 ? -errno : 0;
        left -= (uint64_t)n;
        r = fd_write_all(STDOUT_FILENO, bytes, (size_t)n);
    }
    return r;
}

static int write_counted(int fd, size_t length, uint64_t *written)
{
    for (size_t at = 0; at < length;) {
        ssize_t n = write(fd, bytes + at, length - at);
        if (n < 0)
            return -errno;
        at += (size_t)n;
        *written += (uint64_t)n;
    }
    return 0;
}

/* All of standard input. As much as fits is one write, so that appends do not get into each other. */
static int take_input(int fd, uint64_t length, uint64_t *written)
{
    uint64_t taken = 0;
    ssize_t n;

    do {
        n = fd_read_all(STDIN_FILENO, bytes, sizeof bytes);
        if (n < 0)
            return (int)n;
        taken += (uint64_t)n;
        if (length != WIRE_FILE_ALL && taken > length)
            return -EFBIG;
        int r = write_counted(fd, (size_t)n, written);
        if (r < 0)
            return r;
    } while ((size_t)n == sizeof bytes);
    return length != WIRE_FILE_ALL && taken != length ? -ENODATA : 0;
}

static int tell_written(uint64_t written, int result)
{
    struct wire_message record = {.type = WIRE_WRITTEN, .written = {.bytes = written}};
    int r = reply_record(&record);

    return result < 0 ? result : r;
}

static int write_plainly(const struct wire_file *file, int flags, uint64_t *written)
{
    bool exclusive = (file->flags & WIRE_FILE_EXCLUSIVE) != 0;
    struct stat st = {0};

    flags |= O_WRONLY | O_CREAT | (exclusive ? O_EXCL : 0);
    _cleanup_fd_ int fd = open_file(file->path.text, flags, file->mode, &st);
    if (fd < 0 && has_made_parents(-fd, file, file->path))
        fd = open_file(file->path.text, flags, file->mode, &st);
    if (fd < 0)
        return fd;
    if ((flags & O_APPEND) == 0 && st.st_size > 0 && ftruncate(fd, 0) < 0)
        return -errno;
    return take_input(fd, file->length, written);
}

/* What has no name yet gets one, in one step. */
static int give_name(int fd, int folder, const char *name, bool exclusive)
{
    char source[32];
    char free_name[FILES_FREE_NAME];

    (void)snprintf(source, sizeof source, "/proc/self/fd/%d", fd);
    files_free_name(free_name);
    if (linkat(AT_FDCWD, source, folder, exclusive ? name : free_name, AT_SYMLINK_FOLLOW) < 0)
        return -errno;
    if (!exclusive && renameat(folder, free_name, folder, name) < 0) {
        int error = errno;
        (void)unlinkat(folder, free_name, 0);
        return -error;
    }
    return 0;
}

/* A file without a name goes away with us, whatever ends us. */
static int write_atomically(const struct wire_file *file, uint64_t *written)
{
    bool exclusive = (file->flags & WIRE_FILE_EXCLUSIVE) != 0;
    _cleanup_fd_ int folder = -1;
    const char *name = "";
    struct stat st = {0};

    if (file->path.length > 0 && file->path.text[file->path.length - 1] == '/')
        return -EISDIR;
    int r = files_open_parent(file->path, &folder, &name);
    if (has_made_parents(-r, file, file->path))
        r = files_open_parent(file->path, &folder, &name);
    if (r < 0)
        return r;
    if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        r = exclusive ? -EEXIST : S_ISLNK(st.st_mode) ? 0 : check_is_file(st.st_mode);
    if (r < 0)
        return r;
    _cleanup_fd_ int fd = openat(folder, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, file->mode);
    if (fd < 0)
        return -errno;
    r = take_input(fd, file->length, written);
    if (r == 0)
        r = give_name(fd, folder, name, exclusive);
    if (r < 0)
        *written = 0;
    return r;
}

int files_write(const struct wire_file *file)
{
    bool atomic = (file->flags & WIRE_FILE_ATOMIC) != 0;
    uint64_t written = 0;
    int r = atomic ? write_atomically(file, &written) : write_plainly(file, 0, &written);

    return tell_written(written, r);
}

int files_append(const struct wire_file *file)
{
    uint64_t written = 0;
    int r = write_plainly(file, O_APPEND, &written);

    return tell_written(written, r);
}

int files_stat(const struct wire_file *file)
{
    char target[PATH_SIZE] = "";
    bool follow = (file->flags & WIRE_FILE_NO_FOLLOW) == 0;
    struct stat st = {0};

    if (fstatat(AT_FDCWD, file->path.text, &st, follow ? 0 : AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (S_ISLNK(st.st_mode) && readlink(file->path.text, target, sizeof target - 1) < 0)
        return -errno;
    return reply_entry(&st, "", target);
}

int files_mkdir(const struct wire_file *file)
{
    struct stat st = {0};

    if (mkdir(file->path.text, file->mode) == 0)
        return 0;
    if (has_made_parents(errno, file, file->path) && mkdir(file->path.text, file->mode) == 0)
        return 0;
    int error = errno;
    if (error == EEXIST && (file->flags & WIRE_FILE_PARENTS) != 0 && stat(file->path.text, &st) == 0 &&
        S_ISDIR(st.st_mode))
        return 0;
    return -error;
}

int files_rename(const struct wire_file *file)
{
    unsigned flags = (file->flags & WIRE_FILE_EXCLUSIVE) != 0 ? RENAME_NOREPLACE : 0;
    const char *from = file->path.text;
    const char *to = file->new_path.text;
    struct stat st = {0};

    if (syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, flags) == 0)
        return 0;
    int error = errno;
    /* Which of the two is missing? */
    if (fstatat(AT_FDCWD, from, &st, AT_SYMLINK_NOFOLLOW) == 0 && has_made_parents(error, file, file->new_path) &&
        syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, flags) == 0)
        return 0;
    return -error;
}

int files_chmod(const struct wire_file *file)
{
    return chmod(file->path.text, file->mode) < 0 ? -errno : 0;
}
