/*
 * overlay-in-namespace: a user namespace, a mount namespace in it and an overlay in that: files copied up with other
 * owners and capabilities than they may have (CVE-2021-3493, CVE-2023-0386).
 */
#include "attack/attack.h"
#include "base/sys.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    TRY(attempt, "the namespaces", syscall(SYS_unshare, CLONE_NEWUSER | CLONE_NEWNS), EPERM, ENOSYS);
    /* Outside EINVAL: no folders are given. */
    TRY(attempt, "the overlay", sys_mount("overlay", "/tmp", "overlay", 0), EPERM, ENOSYS);
}

const struct attack attack_overlay_in_namespace = {
    .name = "overlay-in-namespace",
    .tries = "an overlay in a user namespace",
    .group = ATTACK_KERNEL,
    .control = CONTROL_APART,
    .inside = inside,
};
