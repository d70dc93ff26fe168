/*
 * kernel-modules: code in the kernel. Nothing that could be loaded is given, and the module to be removed does not
 * exist.
 */
#include "attack/attack.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    TRY(attempt, "init_module", syscall(SYS_init_module, "", 0, ""), EPERM, ENOSYS);
    TRY(attempt, "finit_module", syscall(SYS_finit_module, -1, "", 0), EPERM, ENOSYS);
    TRY(attempt, "delete_module", syscall(SYS_delete_module, "hutch_attack_none", O_NONBLOCK), EPERM, ENOSYS);
}

const struct attack attack_kernel_modules = {
    .name = "kernel-modules",
    .tries = "loading and removing kernel modules",
    .group = ATTACK_KERNEL,
    .control = CONTROL_APART,
    .inside = inside,
};
