/*
 * unknown-calls: calls that came after the filter was written, and numbers that are none: what nobody has heard of
 * does not exist.
 */
#include "attack/attack.h"

#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    for (long number = 463; number < 520; number++) {
        char what[32];
        (void)snprintf(what, sizeof what, "call %ld", number);
        TRY(attempt, what, syscall(number, -1, -1, -1, -1, -1, -1), ENOSYS, EPERM);
    }
}

const struct attack attack_unknown_calls = {
    .name = "unknown-calls",
    .tries = "system calls newer than the filter",
    .group = ATTACK_KERNEL,
    .inside = inside,
};
