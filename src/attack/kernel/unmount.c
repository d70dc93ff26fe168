/*
 * unmount: takes a mask away and finds what it covered (/proc/kcore, /proc/sys).
 */
#include "attack/attack.h"
#include "base/sys.h"

#include <sys/syscall.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    static const char *const paths[] = {"/proc/sys", "/proc/kcore", "/proc/sysrq-trigger", "/proc/keys"};

    /* Never /: unmounting that makes its file system read-only, for everybody. Outside nothing is mounted on these. */
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        TRY(attempt, paths[i], sys_umount2(paths[i], 0), EPERM, ENOSYS);
}

const struct attack attack_unmount = {
    .name = "unmount",
    .tries = "taking masks off /proc",
    .group = ATTACK_KERNEL,
    .control = CONTROL_APART,
    .inside = inside,
};
