/*
 * Theory of operation. A walk is a stack of open folders, in memory that is there from the start, so that no depth
 * makes it recurse and no folder, however large, makes it grow. It goes down by a name that must be a folder and no
 * symlink, and up only to what it still holds open: whoever moves folders about meanwhile leads it nowhere else. A
 * removal that runs out of levels, or out of path, moves the folder it can't enter up to the first level and finds it
 * there again.
 */
#include "base/cleanup.h"
#include "init/files.h"
#include "init/reply.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

enum { LEVELS = 1024, PATH_SIZE = 4097, ENTRIES_SIZE = 2048 };

struct level {
    int fd;
    bool progress; /* something in it was removed since it was last read from its start */
    bool told;     /* that something in it could not be */
    bool quiet;    /* because that was told when it was read before */
    uint16_t at;
    uint16_t filled;
    uint16_t path_length; /* of its own path */
    _Alignas(8) char entries[ENTRIES_SIZE];
};

static struct level levels[LEVELS];
static size_t depth;
static char path[PATH_SIZE]; /* of what is being looked at, below the folder the walk began in */
static int first_problem;

/* -EPIPE when nobody listens any more; else it goes on. */
static int problem(int error)
{
    if (first_problem == 0)
        first_problem = -error;
    return reply_problem(error, path);
}

/* Enter `name` of the folder we are in, which `path` ends with. */
static int enter(int folder, const char *name, int flags)
{
    if (depth == LEVELS)
        return -EMFILE;
    int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC | flags);
    if (fd < 0)
        return -errno;
    struct level *level = &levels[depth++];
    *level = (struct level){.fd = fd, .path_length = (uint16_t)strlen(path)};
    return 0;
}

/* `path` becomes that of `name` in the innermost folder: false when it is too long. */
static bool point_at(const char *name)
{
    size_t start = levels[depth - 1].path_length;
    size_t length = strlen(name);

    if (start + 1 + length >= PATH_SIZE)
        return false;
    if (start > 0)
        path[start++] = '/';
    memcpy(path + start, name, length + 1);
    return true;
}

/* The next name in the innermost folder, or NULL with an errno, 0 at the end. */
static const struct dirent *next(int *ret_error)
{
    struct level *level = &levels[depth - 1];

    for (;;) {
        if (level->at == level->filled) {
            long n = syscall(SYS_getdents64, level->fd, level->entries, sizeof level->entries);
            if (n <= 0) {
                *ret_error = n < 0 ? errno : 0;
                return NULL;
            }
            level->at = 0;
            level->filled = (uint16_t)n;
        }
        const struct dirent *entry = (const struct dirent *)(const void *)(level->entries + level->at);
        level->at = (uint16_t)(level->at + entry->d_reclen);
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            return entry;
    }
}

static void leave(void)
{
    struct level *level = &levels[--depth];

    close_fd(&level->fd);
    path[level->path_length] = '\0';
}

static int list_one(const char *name, bool recursive)
{
    char target[PATH_SIZE] = "";
    int folder = levels[depth - 1].fd;
    struct stat st;

    if (!point_at(name)) {
        path[levels[depth - 1].path_length] = '\0';
        return problem(ENAMETOOLONG);
    }
    if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : problem(errno); /* it was there a moment ago */
    if (S_ISLNK(st.st_mode) && readlinkat(folder, name, target, sizeof target - 1) < 0)
        target[0] = '\0';
    int r = reply_entry(&st, path, target);
    if (r < 0 || !recursive || !S_ISDIR(st.st_mode))
        return r;
    r = enter(folder, name, O_NOFOLLOW);
    return r < 0 && r != -ENOENT ? problem(-r) : 0;
}

int files_list(const struct wire_file *file)
{
    int r = enter(AT_FDCWD, file->path.text, 0);

    while (r == 0 && depth > 0) {
        int error = 0;
        const struct dirent *entry = next(&error);
        if (entry != NULL) {
            r = list_one(entry->d_name, (file->flags & WIRE_FILE_RECURSIVE) != 0);
            continue;
        }
        leave();
        r = error != 0 ? problem(error) : 0;
    }
    return r < 0 ? r : first_problem;
}

/* To the first level, under a name of its own. */
static int move_up(const char *name)
{
    char free_name[FILES_FREE_NAME];

    files_free_name(free_name);
    if (depth == 1 || renameat(levels[depth - 1].fd, name, levels[0].fd, free_name) < 0)
        return depth == 1 ? -EMFILE : -errno;
    levels[0].progress = true;
    levels[depth - 1].progress = true;
    return 0;
}

static int remove_one(const char *name)
{
    struct level *level = &levels[depth - 1];
    bool fits = point_at(name);

    if (unlinkat(level->fd, name, 0) == 0 || (errno == EISDIR && unlinkat(level->fd, name, AT_REMOVEDIR) == 0)) {
        level->progress = true;
        return 0;
    }
    int error = errno;
    if (error == ENOTEMPTY) {
        int r = fits ? enter(level->fd, name, O_NOFOLLOW) : -EMFILE;
        error = -(r == -EMFILE ? move_up(name) : r);
    }
    if (!fits)
        path[level->path_length] = '\0';
    if (error == 0 || error == ENOENT || level->quiet)
        return 0;
    level->told = true;
    return problem(error);
}

/* The innermost folder has no more names: remove it, or read it again if others could not be seen while it shrank. */
static int finish(int parent, const char *name)
{
    struct level *level = &levels[depth - 1];
    bool again = level->progress;

    path[level->path_length] = '\0';
    if (unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT) {
        leave();
        if (depth > 0)
            levels[depth - 1].progress = true;
        return 0;
    }
    int error = errno;
    if (error == ENOTEMPTY && again && lseek(level->fd, 0, SEEK_SET) == 0) {
        level->progress = false;
        level->quiet = level->told;
        level->at = 0;
        level->filled = 0;
        return 0;
    }
    leave();
    /* That something is left in it has been told. */
    return error == ENOTEMPTY && first_problem != 0 ? 0 : problem(error);
}

static const char *last_name(void)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

static int remove_tree(int folder, const char *name)
{
    int r = enter(folder, name, O_NOFOLLOW);

    while (r == 0 && depth > 0) {
        int error = 0;
        const struct dirent *entry = next(&error);
        if (entry != NULL) {
            r = remove_one(entry->d_name);
            continue;
        }
        path[levels[depth - 1].path_length] = '\0';
        if (error != 0)
            r = problem(error);
        if (r == 0 && depth > 1)
            r = finish(levels[depth - 2].fd, last_name());
        else if (r == 0)
            r = finish(folder, name);
    }
    return r < 0 ? r : first_problem;
}

int files_remove(const struct wire_file *file)
{
    _cleanup_fd_ int folder = -1;
    const char *name = "";
    int r = files_open_parent(file->path, &folder, &name);

    if (r < 0)
        return r;
    if (unlinkat(folder, name, 0) == 0 || (errno == EISDIR && unlinkat(folder, name, AT_REMOVEDIR) == 0))
        return 0;
    if (errno != ENOTEMPTY || (file->flags & WIRE_FILE_RECURSIVE) == 0)
        return -errno;
    return remove_tree(folder, name);
}
