/*
 * ids-outside: ids beyond the 65,536 of the sandbox belong to the host or to a neighbour.
 */
#include "attack/attack.h"

#include <sys/syscall.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    TRY(attempt, "setuid 65536", syscall(SYS_setuid, 65536), EINVAL, EPERM);
    TRY(attempt, "setuid of a neighbour's range", syscall(SYS_setuid, 0x20000000), EINVAL, EPERM);
    TRY(attempt, "chown", chown("/tmp", 70000, 70000), EINVAL, EPERM);
}

const struct attack attack_ids_outside = {
    .name = "ids-outside",
    .tries = "taking ids of the host and of neighbours",
    .group = ATTACK_KERNEL,
    .variants = AS_ROOT,
    .inside = inside,
};
