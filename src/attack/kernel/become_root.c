/*
 * become-root: ids that are not one's own, with every call that sets them; all others of the range would be a
 * neighbour's.
 */
#include "attack/attack.h"

#include <grp.h>
#include <sys/syscall.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    gid_t group = 0;

    TRY(attempt, "setuid", syscall(SYS_setuid, 0), EPERM, ENOSYS);
    TRY(attempt, "setresuid", syscall(SYS_setresuid, 0, 0, 0), EPERM, ENOSYS);
    TRY(attempt, "setreuid", syscall(SYS_setreuid, 0, 0), EPERM, ENOSYS);
    TRY(attempt, "setgid", syscall(SYS_setgid, 0), EPERM, ENOSYS);
    TRY(attempt, "setgroups", syscall(SYS_setgroups, 1, &group), EPERM, ENOSYS);
}

const struct attack attack_become_root = {
    .name = "become-root",
    .tries = "becoming root, and other users",
    .group = ATTACK_KERNEL,
    .variants = AS_NOBODY | WITH_TIGHT,
    .control = CONTROL_APART,
    .inside = inside,
};
