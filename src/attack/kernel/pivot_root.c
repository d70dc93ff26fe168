/*
 * pivot-root: exchanges the root for another one.
 */
#include "attack/attack.h"
#include "base/sys.h"

#include <sys/syscall.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    /* Outside EINVAL: the root can't be put on itself. */
    TRY(attempt, "pivot_root", sys_pivot_root("/tmp", "/tmp"), EPERM, ENOSYS);
}

const struct attack attack_pivot_root = {
    .name = "pivot-root",
    .tries = "changing the root with pivot_root",
    .group = ATTACK_KERNEL,
    .control = CONTROL_APART,
    .inside = inside,
};
