/*
 * runtime-binary: the runtime's own program, open through /proc while it becomes the command, was overwritten and run
 * by the next caller as root (CVE-2019-5736).
 */
#include "attack/attack.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    static const char *const paths[] = {"/proc/self/exe", "/proc/1/exe", "/attack/hutch-attack"};
    char parent[64];

    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        TRY(attempt, paths[i], open(paths[i], O_WRONLY | O_CLOEXEC), EACCES, EROFS, ETXTBSY, ENOENT);
    (void)snprintf(parent, sizeof parent, "/proc/%d/exe", getppid());
    TRY(attempt, "the parent's", open(parent, O_WRONLY | O_CLOEXEC), EACCES, EROFS, ETXTBSY, ENOENT);
}

const struct attack attack_runtime_binary = {
    .name = "runtime-binary",
    .tries = "overwriting Hutch's own program through /proc",
    .group = ATTACK_FILES,
    .inside = inside,
};
