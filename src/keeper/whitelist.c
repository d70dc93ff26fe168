#include "keeper/whitelist.h"

#include "base/cleanup.h"
#include "base/nearest.h"
#include "base/sys.h"
#include "keeper/program.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const char *const folders[] = {"/usr/local/bin", "/usr/bin", "/usr/local/sbin", "/usr/sbin"};

struct listed {
    char path[PATH_MAX]; /* real, relative to /usr */
    struct program program;
};

bool whitelist_has(const struct buf *programs, const char *path)
{
    const char *at = (const char *)programs->data;
    const char *end = at + programs->length;

    for (; at < end; at += strlen(at) + 1) {
        if (strcmp(at, path) == 0)
            return true;
    }
    return false;
}

static int add(struct buf *programs, const char *path, struct error *err)
{
    if (whitelist_has(programs, path))
        return 0;
    int r = buf_append(programs, path, strlen(path) + 1);
    return r < 0 ? error_set(err, ERROR_LIMIT, -r, "the list of programs is too long") : 0;
}

static int not_found(const char *name, struct error *err)
{
    struct nearest nearest = nearest_init(name);
    char best[NAME_MAX + 1] = "";

    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        DIR *folder = opendir(folders[i]);
        const struct dirent *entry;
        while (folder != NULL && (entry = readdir(folder)) != NULL) {
            size_t before = nearest.distance;
            nearest_offer(&nearest, entry->d_name);
            if (nearest.distance < before)
                (void)snprintf(best, sizeof best, "%s", entry->d_name);
        }
        if (folder != NULL)
            (void)closedir(folder);
    }
    if (best[0] != '\0' && nearest.distance * 2 <= strlen(name) + 1)
        return error_set(err, ERROR_NOT_FOUND, 0, "there is no program '%.100s'; did you mean %s?", name, best);
    return error_set(err, ERROR_NOT_FOUND, 0,
                     "there is no program '%.100s' in /usr/local/bin, /usr/bin, /usr/local/sbin or /usr/sbin", name);
}

/* A host path's real one, relative to /usr. -ENOENT when there is nothing; -EXDEV when it leads out of /usr. */
static int follow(const char *path, char real[PATH_MAX])
{
    char full[PATH_MAX];

    if (realpath(path, full) == NULL)
        return -errno;
    if (strncmp(full, "/usr/", 5) != 0)
        return -EXDEV;
    memcpy(real, full + 5, strlen(full + 5) + 1);
    return 0;
}

static int find(const char *name, char real[PATH_MAX], struct error *err)
{
    char path[PATH_MAX];
    int r = -ENOENT;

    if (name[0] == '/') {
        r = follow(name, real);
        if (r == -ENOENT)
            return error_set(err, ERROR_NOT_FOUND, 0, "there is no program %.200s", name);
    }
    for (size_t i = 0; name[0] != '/' && r == -ENOENT && i < sizeof folders / sizeof *folders; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", folders[i], name);
        r = follow(path, real);
    }
    if (r == -ENOENT)
        return not_found(name, err);
    if (r == -EXDEV)
        return error_set(err, ERROR_INVALID, 0, "program '%.100s' is a link that leads out of /usr", name);
    return r < 0 ? error_set(err, ERROR_SYSTEM, -r, "looking for program '%.100s'", name) : 0;
}

static int resolve(int usr_fd, const char *name, struct listed *listed, struct error *err)
{
    struct stat st;
    int r = find(name, listed->path, err);

    if (r < 0)
        return r;
    /* What is mounted over a folder of /usr on the host is not in a sandbox. */
    _cleanup_fd_ int fd = sys_openat2(usr_fd, listed->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK,
                                      RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
    if (fd < 0 || fstat(fd, &st) < 0)
        return error_errno(err, "opening program /usr/%.200s", listed->path);
    if (!S_ISREG(st.st_mode) || (st.st_mode & 0111) == 0)
        return error_set(err, ERROR_INVALID, 0, "/usr/%.200s can't be executed", listed->path);
    r = program_examine(fd, true, &listed->program);
    if (r < 0)
        return error_set(err, ERROR_SYSTEM, -r, "reading program /usr/%.200s", listed->path);
    if (listed->program.kind != PROGRAM_BINARY && listed->program.kind != PROGRAM_SCRIPT)
        return error_set(err, ERROR_INVALID, 0, "/usr/%.200s is neither a program for this machine nor a script",
                         listed->path);
    if (listed->program.writes_code)
        return error_set(err, ERROR_INVALID, 0,
                         "/usr/%.200s wants memory that is writable and executable; no list could hold it",
                         listed->path);
    return 0;
}

static int add_program(int usr_fd, const char *name, struct buf *programs, struct error *err)
{
    struct listed listed;
    char loader[PATH_MAX];
    int r = resolve(usr_fd, name, &listed, err);

    if (r == 0)
        r = add(programs, listed.path, err);
    if (r < 0 || listed.program.kind != PROGRAM_BINARY || listed.program.interpreter[0] == '\0')
        return r;
    r = follow(listed.program.interpreter, loader);
    if (r < 0)
        return error_set(err, ERROR_INVALID, -r, "the loader %.200s of '%.100s'", listed.program.interpreter, name);
    return add(programs, loader, err);
}

static int need_interpreter(const struct buf *programs, const char *script, const char *interpreter, struct error *err)
{
    char real[PATH_MAX];

    if (follow(interpreter, real) == 0 && whitelist_has(programs, real))
        return 0;
    return error_set(err, ERROR_INVALID, 0,
                     "'%.100s' is a script for %.200s: list that too; it then runs any script it is given", script,
                     interpreter);
}

/* `#!/usr/bin/env NAME` needs both. */
static int check_script(int usr_fd, const char *name, const struct buf *programs, struct error *err)
{
    struct listed listed;
    char real[PATH_MAX];
    int r = resolve(usr_fd, name, &listed, err);

    if (r < 0 || listed.program.kind != PROGRAM_SCRIPT)
        return r;
    const struct program *script = &listed.program;
    r = need_interpreter(programs, name, script->interpreter, err);
    if (r < 0 || strcmp(script->interpreter, "/usr/bin/env") != 0 || script->argument[0] == '-')
        return r;
    struct error unknown;
    if (find(script->argument, real, &unknown) == 0 && whitelist_has(programs, real))
        return 0;
    return need_interpreter(programs, name, script->argument, err);
}

int whitelist_resolve(int usr_fd, struct wire_strv names, struct buf *programs, struct error *err)
{
    const char *name;
    int r = 0;

    for (name = NULL; r == 0 && (name = wire_strv_next(names, name)) != NULL;)
        r = add_program(usr_fd, name, programs, err);
    for (name = NULL; r == 0 && (name = wire_strv_next(names, name)) != NULL;)
        r = check_script(usr_fd, name, programs, err);
    return r;
}
