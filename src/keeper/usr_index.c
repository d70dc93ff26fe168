#include "keeper/usr_index.h"

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/sys.h"
#include "keeper/program.h"

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

enum { DEPTH_MAX = 64, BYTES_MAX = 256 << 20, LOOK_AGAIN_SECONDS = 5 };

static const char index_name[] = "usr";
static const char index_new[] = "usr.new";

/* The file: this, one stamp and path per folder, then the programs' paths; paths end in NUL. */
struct head {
    char magic[8];
    uint64_t generation;
    uint64_t folders;
};

struct stamp {
    uint64_t inode;
    int64_t seconds;
    int64_t nanoseconds;
};

static const char magic[8] = "hutch-u1";

struct walk {
    struct buf folders;
    struct buf programs;
    uint64_t folder_count;
    char path[PATH_MAX];
};

/*
 * What ends in these is read by programs and is none: not opened, when it has no execute bit, because that would take
 * most of the time (they are five files in six), and left in its place when it is a script with one, as some modules of
 * Python's own library are. Landlock lets none of them be executed.
 */
static const char *const data_endings[] = {
    ".a",  ".bc",  ".c",   ".cc",   ".cmake", ".conf", ".crt", ".css", ".gif", ".go",  ".gz",  ".h",   ".hpp",  ".html",
    ".in", ".jar", ".js",  ".json", ".md",    ".mo",   ".mod", ".pem", ".php", ".pl",  ".pm",  ".png", ".py",   ".pyc",
    ".rb", ".rs",  ".rst", ".s",    ".so",    ".sql",  ".svg", ".tcl", ".ts",  ".txt", ".vim", ".xml", ".yaml", ".yml",
};

static bool is_data_by_name(const char *name)
{
    const char *ending = strrchr(name, '.');

    for (size_t i = 0; ending != NULL && i < sizeof data_endings / sizeof *data_endings; i++) {
        if (strcmp(ending, data_endings[i]) == 0)
            return true;
    }
    return false;
}

static struct stamp stamp_of(const struct stat *st)
{
    return (struct stamp){st->st_ino, st->st_mtim.tv_sec, st->st_mtim.tv_nsec};
}

static int add_program(struct walk *walk, int dir, const char *name)
{
    struct program program;
    struct stat st;

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    bool executable = (st.st_mode & 0111) != 0;
    if (!S_ISREG(st.st_mode) || (!executable && is_data_by_name(name)))
        return 0;
    _cleanup_fd_ int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return errno == ENOENT ? 0 : -errno;
    int r = program_examine(fd, executable, &program);
    if (r < 0 || program.kind == PROGRAM_NONE || program.kind == PROGRAM_LIBRARY ||
        (program.kind != PROGRAM_BINARY && is_data_by_name(name)))
        return r;
    return buf_append(&walk->programs, walk->path, strlen(walk->path) + 1);
}

static int walk_folder(struct walk *walk, int dir, const char *name, int depth);

static int walk_entry(struct walk *walk, int dir, const struct dirent *entry, int depth)
{
    size_t length = strlen(walk->path);
    struct stat st;
    bool is_folder = entry->d_type == DT_DIR;

    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
        return 0;
    if (entry->d_type == DT_UNKNOWN && fstatat(dir, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        is_folder = S_ISDIR(st.st_mode);
    if (!is_folder && entry->d_type != DT_REG && entry->d_type != DT_UNKNOWN)
        return 0;
    int n = snprintf(walk->path + length, sizeof walk->path - length, "%s%s", length > 0 ? "/" : "", entry->d_name);
    if (n < 0 || (size_t)n >= sizeof walk->path - length)
        return -ENAMETOOLONG;
    int r = is_folder ? walk_folder(walk, dir, entry->d_name, depth) : add_program(walk, dir, entry->d_name);
    walk->path[length] = '\0';
    return r;
}

static int walk_folder(struct walk *walk, int dir, const char *name, int depth)
{
    struct stat st;
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;

    if (folder == NULL) {
        int r = errno == ENOENT ? 0 : -errno;
        close_fd(&fd);
        return r;
    }
    /* Before its entries: what changes while they are read is seen by whoever compares. */
    int r = depth > DEPTH_MAX ? -ELOOP : fstat(fd, &st) < 0 ? -errno : 0;
    if (r == 0) {
        struct stamp stamp = stamp_of(&st);
        r = buf_append(&walk->folders, &stamp, sizeof stamp);
    }
    if (r == 0)
        r = buf_append(&walk->folders, walk->path, strlen(walk->path) + 1);
    walk->folder_count++;
    while (r == 0 && (entry = readdir(folder)) != NULL)
        r = walk_entry(walk, fd, entry, depth + 1);
    (void)closedir(folder);
    return r;
}

static int store(int folder, const struct walk *walk, struct error *err)
{
    struct head head = {.folders = walk->folder_count};
    _cleanup_fd_ int fd = openat(folder, index_new, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0)
        return error_errno(err, "keeping the list of programs");
    memcpy(head.magic, magic, sizeof magic);
    int r = getrandom(&head.generation, sizeof head.generation, 0) < 0 ? -errno : 0;
    if (r == 0)
        r = fd_write_all(fd, &head, sizeof head);
    if (r == 0)
        r = fd_write_all(fd, walk->folders.data, walk->folders.length);
    if (r == 0)
        r = fd_write_all(fd, walk->programs.data, walk->programs.length);
    if (r == 0 && renameat(folder, index_new, folder, index_name) < 0)
        r = -errno;
    return r < 0 ? error_set(err, ERROR_SYSTEM, -r, "keeping the list of programs") : 0;
}

int usr_index_make(int folder, int usr_fd, struct error *err)
{
    struct walk walk = {.folders = buf_init(BYTES_MAX), .programs = buf_init(BYTES_MAX)};
    int r = walk_folder(&walk, usr_fd, ".", 0);

    r = r < 0 ? error_set(err, ERROR_SYSTEM, -r, "looking for programs at /usr/%.200s", walk.path)
              : store(folder, &walk, err);
    buf_release(&walk.folders);
    buf_release(&walk.programs);
    return r;
}

static int open_index(int folder, struct stat *ret_stat)
{
    struct stat st;
    _cleanup_fd_ int fd = openat(folder, index_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode) || st.st_uid != 0 || (st.st_mode & 077) != 0 || st.st_size < (off_t)sizeof(struct head) ||
        st.st_size > BYTES_MAX)
        return -ENOENT;
    *ret_stat = st;
    return TAKE_FD(fd);
}

static int read_index(int folder, struct buf *data)
{
    struct stat st = {0};
    _cleanup_fd_ int fd = open_index(folder, &st);

    if (fd < 0)
        return fd;
    data->data = malloc((size_t)st.st_size + 1);
    if (data->data == NULL)
        return -ENOMEM;
    ssize_t n = fd_read_all(fd, data->data, (size_t)st.st_size);
    if (n < 0)
        return (int)n;
    data->length = (size_t)n;
    /* Strings are read up to their NUL. */
    return data->length >= sizeof(struct head) && (n == sizeof(struct head) || data->data[n - 1] == '\0') ? 0 : -ENOENT;
}

/* Whether all folders are as they were; `ret_rest` is what comes behind them. */
static bool is_unchanged(const struct buf *data, int usr_fd, uint64_t folders, const char **ret_rest)
{
    const char *at = (const char *)data->data + sizeof(struct head);
    const char *end = (const char *)data->data + data->length;

    for (uint64_t i = 0; i < folders; i++) {
        struct stamp then;
        struct stat st;
        if ((size_t)(end - at) <= sizeof then)
            return false;
        memcpy(&then, at, sizeof then);
        at += sizeof then;
        if (fstatat(usr_fd, at, &st, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) < 0)
            return false;
        struct stamp now = stamp_of(&st);
        if (memcmp(&now, &then, sizeof now) != 0)
            return false;
        at += strlen(at) + 1;
    }
    *ret_rest = at;
    return true;
}

int usr_index_load(int folder, int usr_fd, struct usr_index *ret_index)
{
    struct usr_index index = {.data = buf_init(BYTES_MAX)};
    struct head head;
    int r = read_index(folder, &index.data);

    if (r == 0) {
        memcpy(&head, index.data.data, sizeof head);
        bool good = memcmp(head.magic, magic, sizeof magic) == 0 &&
                    is_unchanged(&index.data, usr_fd, head.folders, &index.programs);
        r = good ? 0 : -ENOENT;
    }
    if (r < 0) {
        usr_index_release(&index);
        return r;
    }
    index.generation = head.generation;
    index.end = (const char *)index.data.data + index.data.length;
    *ret_index = index;
    return 0;
}

int usr_index_current(int folder, int usr_fd, uint64_t *ret_generation)
{
    struct usr_index index;
    struct head head;
    struct stat st = {0};
    _cleanup_fd_ int fd = open_index(folder, &st);
    time_t now = time(NULL);

    if (fd < 0)
        return fd;
    if (fd_read_all(fd, &head, sizeof head) == (ssize_t)sizeof head && memcmp(head.magic, magic, sizeof magic) == 0 &&
        st.st_mtim.tv_sec <= now && now - st.st_mtim.tv_sec < LOOK_AGAIN_SECONDS) {
        *ret_generation = head.generation;
        return 0;
    }
    int r = usr_index_load(folder, usr_fd, &index);
    if (r < 0)
        return r;
    *ret_generation = index.generation;
    usr_index_release(&index);
    /* Should another have taken its place meanwhile, this one is not looked at again. */
    return futimens(fd, NULL) < 0 ? -errno : 0;
}

void usr_index_release(struct usr_index *index)
{
    buf_release(&index->data);
}
