/*
 * kexec: boots another kernel. With more segments than there may be, so that the kernel itself says no once it has
 * looked at the caller.
 */
#include "attack/attack.h"

#include <sys/syscall.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    TRY(attempt, "kexec_load", syscall(SYS_kexec_load, 0, 1 << 20, NULL, 0), EPERM, ENOSYS);
    TRY(attempt, "kexec_file_load", syscall(SYS_kexec_file_load, -1, -1, 0, NULL, 0), EPERM, ENOSYS);
}

const struct attack attack_kexec = {
    .name = "kexec",
    .tries = "loading another kernel",
    .group = ATTACK_KERNEL,
    .control = CONTROL_APART,
    .inside = inside,
};
