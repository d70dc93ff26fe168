/*
 * accounting: process accounting and quotas write files for the kernel. On paths that do not exist.
 */
#include "attack/attack.h"

#include <sys/syscall.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    TRY(attempt, "acct", syscall(SYS_acct, "/hutch-attack-none"), EPERM, ENOSYS);
    TRY(attempt, "quotactl", syscall(SYS_quotactl, 0x80000700, "/hutch-attack-none", 0, NULL), EPERM, ENOSYS);
}

const struct attack attack_accounting = {
    .name = "accounting",
    .tries = "process accounting and disk quotas",
    .group = ATTACK_KERNEL,
    .control = CONTROL_APART,
    .inside = inside,
};
