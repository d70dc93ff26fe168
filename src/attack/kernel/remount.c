/*
 * remount: read-only flags of the root, of /usr and of /proc/sys, taken away.
 */
#include "attack/attack.h"
#include "base/sys.h"

#include <sys/syscall.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    static const char *const paths[] = {"/", "/usr", "/proc/sys", "/proc", "/dev"};
    struct mount_attr attr = {.attr_clr = MOUNT_ATTR_RDONLY};

    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        TRY(attempt, paths[i], sys_mount(NULL, paths[i], NULL, MS_REMOUNT | MS_BIND), EPERM, ENOSYS);
    TRY(attempt, "mount_setattr", sys_mount_setattr(AT_FDCWD, "/", 0, &attr), EPERM, ENOSYS);
}

const struct attack attack_remount = {
    .name = "remount",
    .tries = "making /, /usr and /proc/sys writable again",
    .group = ATTACK_KERNEL,
    .control = CONTROL_APART,
    .inside = inside,
};
