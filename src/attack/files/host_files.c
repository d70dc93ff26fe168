/*
 * host-files: files of the host's by their names, and through every link of /proc that could lead there.
 */
#include "attack/attack.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

static bool is_empty(const char *path)
{
    DIR *folder = opendir(path);
    int count = 0;

    if (folder == NULL)
        return false;
    while (readdir(folder) != NULL)
        count++;
    (void)closedir(folder);
    return count <= 2;
}

static void inside(struct attempt *attempt)
{
    static const char *const roots[] = {"", "/proc/self/root", "/proc/self/cwd", "/proc/thread-self/root",
                                        "/proc/1/root"};
    static const char *const private[] = {"/etc/shadow", "/root", "/var/lib/hutch", "/run/hutch", "/boot", "/var/log"};

    ignore_result(chdir("/"));
    for (size_t i = 0; i < sizeof roots / sizeof *roots; i++) {
        char path[512];
        (void)snprintf(path, sizeof path, "%s%s", roots[i], attempt_canary("FILE"));
        TRY(attempt, roots[i][0] != '\0' ? roots[i] : "by name", open(path, O_RDONLY | O_CLOEXEC), ENOENT, EACCES);
    }
    for (size_t i = 0; i < sizeof private / sizeof *private; i++) {
        attempt_say(attempt, private[i], access(private[i], R_OK) != 0 || is_empty(private[i]), "something is there");
    }
}

const struct attack attack_host_files = {
    .name = "host-files",
    .tries = "the host's files by name and through /proc",
    .group = ATTACK_FILES,
    .control = CONTROL_BESIDE,
    .inside = inside,
};
