/*
 * mount: the beginning of most escapes: a file system of one's own choice.
 */
#include "attack/attack.h"
#include "base/sys.h"

#include <sys/syscall.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    TRY(attempt, "tmpfs", sys_mount("none", "/tmp", "tmpfs", 0), EPERM, ENOSYS);
    TRY(attempt, "proc", sys_mount("none", "/tmp", "proc", 0), EPERM, ENOSYS);
    TRY(attempt, "sysfs", sys_mount("none", "/tmp", "sysfs", 0), EPERM, ENOSYS);
    TRY(attempt, "cgroup2", sys_mount("none", "/tmp", "cgroup2", 0), EPERM, ENOSYS);
    TRY(attempt, "a bind of /", sys_mount("/", "/tmp", NULL, MS_BIND), EPERM, ENOSYS);
    TRY(attempt, "propagation", sys_mount(NULL, "/", NULL, MS_SHARED | MS_REC), EPERM, ENOSYS);
}

const struct attack attack_mount = {
    .name = "mount",
    .tries = "mounting tmpfs, proc, cgroup, a bind, a device",
    .group = ATTACK_KERNEL,
    .control = CONTROL_APART,
    .inside = inside,
};
