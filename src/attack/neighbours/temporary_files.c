/*
 * temporary-files: files of the neighbour's in /tmp, /dev/shm, /run and /workspace, by their names.
 */
#include "attack/attack.h"

#include <fcntl.h>
#include <stdio.h>

static void inside(struct attempt *attempt)
{
    static const char *const folders[] = {"/tmp", "/dev/shm", "/run", "/workspace", "/home/sandbox"};

    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        char path[192];
        (void)snprintf(path, sizeof path, "%s/%.100s", folders[i], attempt_canary("NAME"));
        TRY(attempt, folders[i], open(path, O_RDWR | O_CLOEXEC), ENOENT);
    }
}

const struct attack attack_temporary_files = {
    .name = "temporary-files",
    .tries = "files of the neighbour's in /tmp and /dev/shm",
    .group = ATTACK_NEIGHBOURS,
    .inside = inside,
};
