/*
 * nested-user-namespace: in a user namespace of its own a process has every capability, and so reaches code that was
 * never written to withstand anybody (CVE-2022-0185, CVE-2023-32233).
 */
#include "attack/attack.h"
#include "base/sys.h"

#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    struct clone_args args = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};

    TRY(attempt, "clone", attempt_only_parent(sys_clone(CLONE_NEWUSER | SIGCHLD)), EPERM, ENOSYS);
    /* The kernel looks at 32 bits of the flags; a filter that looks at others is blind. */
    TRY(attempt, "clone, high bits set", attempt_only_parent(sys_clone(CLONE_NEWUSER | SIGCHLD | 1UL << 40)), EPERM,
        ENOSYS);
    TRY(attempt, "clone3", attempt_only_parent(sys_clone3(&args)), EPERM, ENOSYS);
    TRY(attempt, "unshare", syscall(SYS_unshare, CLONE_NEWUSER), EPERM, ENOSYS);
}

const struct attack attack_nested_user_namespace = {
    .name = "nested-user-namespace",
    .tries = "a user namespace, and capabilities with it",
    .group = ATTACK_KERNEL,
    .control = CONTROL_APART,
    .inside = inside,
};
