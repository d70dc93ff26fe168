/*
 * posix-queue: a POSIX queue by the name that the neighbour gave its own.
 */
#include "attack/attack.h"

#include <fcntl.h>
#include <mqueue.h>
#include <stdio.h>

static void inside(struct attempt *attempt)
{
    char name[128];

    (void)snprintf(name, sizeof name, "/%.100s", attempt_canary("NAME"));
    TRY(attempt, "mq_open", mq_open(name, O_RDWR | O_CLOEXEC), ENOENT, ENOSYS);
}

const struct attack attack_posix_queue = {
    .name = "posix-queue",
    .tries = "a POSIX message queue of the neighbour's",
    .group = ATTACK_NEIGHBOURS,
    .inside = inside,
};
