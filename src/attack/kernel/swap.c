/*
 * swap: takes or adds swap space of the whole machine. On a path that is none.
 */
#include "attack/attack.h"

#include <sys/syscall.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    TRY(attempt, "swapon", syscall(SYS_swapon, "/dev/null", 0), EPERM, ENOSYS);
    TRY(attempt, "swapoff", syscall(SYS_swapoff, "/dev/null"), EPERM, ENOSYS);
}

const struct attack attack_swap = {
    .name = "swap",
    .tries = "adding and removing swap space",
    .group = ATTACK_KERNEL,
    .control = CONTROL_APART,
    .inside = inside,
};
