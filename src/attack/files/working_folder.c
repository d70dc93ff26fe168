/*
 * working-folder: a working folder of /proc/self/fd/N is looked up while the runtime's own descriptors are open
 * (CVE-2024-21626).
 */
#include "attack/attack.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    char path[512] = "";
    size_t used = 0;

    TRY(attempt, "a cgroup as working folder", open("cgroup.procs", O_RDONLY | O_CLOEXEC), ENOENT);
    for (int up = 0; up < 12; up++) {
        char what[32];
        used += (size_t)snprintf(path + used, sizeof path - used, "../");
        (void)snprintf(path + used, sizeof path - used, "%s", attempt_canary("FILE") + 1);
        (void)snprintf(what, sizeof what, "up %d folders", up + 1);
        TRY(attempt, what, open(path, O_RDONLY | O_CLOEXEC), ENOENT, ENOTDIR);
    }
}

const struct attack attack_working_folder = {
    .name = "working-folder",
    .tries = "a working folder that is one of Hutch's descriptors",
    .group = ATTACK_FILES,
    .variants = AS_NOBODY | AS_ROOT,
    .inside = inside,
    .rounds = 18,
    .round_option = "--workdir=/proc/self/fd/%u",
    .may_not_start = true,
};
