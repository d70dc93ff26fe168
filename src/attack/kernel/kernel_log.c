/*
 * kernel-log: the kernel's messages tell addresses and what other tenants' programs crash with.
 */
#include "attack/attack.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    char text[64];

    TRY(attempt, "syslog, size", syscall(SYS_syslog, 10, NULL, 0), EPERM, ENOSYS);
    TRY(attempt, "syslog, read", syscall(SYS_syslog, 3, text, sizeof text), EPERM, ENOSYS);
    TRY(attempt, "/proc/kmsg", open("/proc/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC), EPERM, EACCES, ENOENT);
    TRY(attempt, "/dev/kmsg", open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC), ENOENT);
}

const struct attack attack_kernel_log = {
    .name = "kernel-log",
    .tries = "reading the kernel's log",
    .group = ATTACK_KERNEL,
    .control = CONTROL_APART,
    .inside = inside,
};
