/*
 * reboot: ends the machine. Without the second magic number: the kernel checks that only after it has checked the
 * caller.
 */
#include "attack/attack.h"

#include <linux/reboot.h>
#include <sys/syscall.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    TRY(attempt, "reboot", syscall(SYS_reboot, LINUX_REBOOT_MAGIC1, 0, LINUX_REBOOT_CMD_RESTART, NULL), EPERM, ENOSYS);
    TRY(attempt, "Ctrl-Alt-Del", syscall(SYS_reboot, LINUX_REBOOT_MAGIC1, 0, LINUX_REBOOT_CMD_CAD_ON, NULL), EPERM,
        ENOSYS);
}

const struct attack attack_reboot = {
    .name = "reboot",
    .tries = "rebooting the machine",
    .group = ATTACK_KERNEL,
    .control = CONTROL_APART,
    .inside = inside,
};
