/*
 * namespaces: every other kind of namespace, with clone, clone3 and unshare.
 */
#include "attack/attack.h"
#include "base/sys.h"

#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NEWTIME = 0x80 };

static const struct {
    const char *name;
    unsigned long flag;
} kinds[] = {
    {"mount", CLONE_NEWNS}, {"network", CLONE_NEWNET}, {"IPC", CLONE_NEWIPC},       {"UTS", CLONE_NEWUTS},
    {"time", NEWTIME},      {"PID", CLONE_NEWPID},     {"cgroup", CLONE_NEWCGROUP},
};

static void inside(struct attempt *attempt)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct clone_args args = {.flags = kinds[i].flag, .exit_signal = SIGCHLD};
        char what[64];
        (void)snprintf(what, sizeof what, "clone3, %s", kinds[i].name);
        TRY(attempt, what, attempt_only_parent(sys_clone3(&args)), EPERM, ENOSYS);
        if (kinds[i].flag != NEWTIME) {
            (void)snprintf(what, sizeof what, "clone, %s", kinds[i].name);
            TRY(attempt, what, attempt_only_parent(sys_clone(kinds[i].flag | SIGCHLD)), EPERM, ENOSYS);
        }
        (void)snprintf(what, sizeof what, "unshare, %s", kinds[i].name);
        TRY(attempt, what, syscall(SYS_unshare, kinds[i].flag), EPERM, ENOSYS);
    }
}

const struct attack attack_namespaces = {
    .name = "namespaces",
    .tries = "new mount, PID, network, IPC, UTS, cgroup, time namespaces",
    .group = ATTACK_KERNEL,
    .control = CONTROL_APART,
    .inside = inside,
};
