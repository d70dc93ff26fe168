/*
 * file-locks: a lock on a file that all sandboxes see would let one stop all others, and tell them things. The
 * neighbour holds this one.
 */
#include "attack/attack.h"

#include <fcntl.h>
#include <sys/file.h>

static void inside(struct attempt *attempt)
{
    int fd = open("/usr/bin/env", O_RDONLY | O_CLOEXEC);

    attempt_say(attempt, "flock", flock(fd, LOCK_EX | LOCK_NB) == 0, "the neighbour's lock is felt");
}

const struct attack attack_file_locks = {
    .name = "file-locks",
    .tries = "locks on files that sandboxes share",
    .group = ATTACK_NEIGHBOURS,
    .inside = inside,
};
