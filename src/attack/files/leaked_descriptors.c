/*
 * leaked-descriptors: descriptors that the runtime forgot to close lead to the host's files (CVE-2024-21626). The
 * caller leaves one open on purpose.
 */
#include "attack/attack.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    int open_count = 0;
    int host_fd = -1;

    for (int fd = 3; fd < 4096; fd++) {
        if (fcntl(fd, F_GETFD) < 0)
            continue;
        open_count++;
        if (faccessat(fd, "secret", F_OK, 0) == 0)
            host_fd = fd;
    }
    attempt_say(attempt, "descriptors above 2", open_count == 0, "%d are open", open_count);
    attempt_say(attempt, "the host's file through one", host_fd < 0, "descriptor %d leads to it", host_fd);
}

const struct attack attack_leaked_descriptors = {
    .name = "leaked-descriptors",
    .tries = "files left open by Hutch or its caller",
    .group = ATTACK_FILES,
    .control = CONTROL_BESIDE,
    .inside = inside,
};
