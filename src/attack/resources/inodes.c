/*
 * inodes: files with nothing in them, until no more can be named.
 */
#include "attack/attack.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    unsigned count = 0;
    int fd = 0;

    while (fd >= 0 && count < 1000000) {
        char path[64];
        (void)snprintf(path, sizeof path, "/tmp/file-%u", count++);
        fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        if (fd >= 0)
            (void)close(fd);
    }
    TRIED(attempt, "one more", fd, errno, ENOSPC);
    attempt_say(attempt, "how many", count <= 2048, "%u", count);
}

const struct attack attack_inodes = {
    .name = "inodes",
    .tries = "files without end",
    .group = ATTACK_RESOURCES,
    .variants = AS_NOBODY | AS_ROOT,
    .inside = inside,
    .options = {"--disk", "8M"},
};
