#include "cli/advice.h"

#include "wire/steps.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const struct {
    enum step step;
    int err;
    const char *words;
} table[] = {
    {STEP_CLONE, EPERM,
     "Hutch needs CAP_SETUID and CAP_SYS_ADMIN, or user namespaces are restricted here; see sysctl "
     "kernel.unprivileged_userns_clone and "
     "kernel.apparmor_restrict_unprivileged_userns"},
    {STEP_CLONE, ENOSPC, "too many namespaces; raise sysctl user.max_user_namespaces and its siblings"},
    {STEP_CLONE, EAGAIN, "too many processes; raise ulimit -u or the pids limit of the cgroup that Hutch runs in"},
    {STEP_NETWORK, ENOSPC, "too many network namespaces; raise sysctl user.max_net_namespaces"},
    {STEP_NETWORK, EPERM,
     "Hutch needs CAP_SYS_ADMIN and CAP_NET_ADMIN to make a network namespace; run it on the host, not in a container"},
    {STEP_CGROUP, EROFS, "the cgroup tree is read-only; run Hutch on the host or with a writable cgroup tree"},
    {STEP_CGROUP, EACCES, "the cgroup tree is not writable; run Hutch on the host or with a delegated cgroup"},
    {STEP_LIMITS, EROFS, "the cgroup tree is read-only; run Hutch on the host or with a writable cgroup tree"},
    {STEP_LIMITS, EACCES, "the cgroup tree is not writable; run Hutch on the host or with a delegated cgroup"},
    {STEP_DEV, EPERM, "Hutch needs CAP_MKNOD; run it on the host, not in a container"},
    {STEP_PROC, EPERM,
     "a fresh /proc is only allowed where the host's own has nothing mounted over it; run Hutch on "
     "the host, not in a container with a masked /proc"},
    {STEP_ROOT, ENODEV, "the kernel has no overlayfs; load it with: modprobe overlay"},
    {STEP_USR, ENODEV, "the kernel has no overlayfs; load it with: modprobe overlay"},
    {STEP_TERMINAL, ENODEV, "the kernel has no pseudo-terminals (CONFIG_UNIX98_PTYS)"},
    {STEP_INIT, EACCES, "hutch-init must be readable and executable for everybody: chmod 0755 hutch-init"},
    {STEP_FILTER, EINVAL, "the kernel lacks CONFIG_SECCOMP_FILTER"},
    {STEP_CONFINE, ENOENT, "the kernel lacks CONFIG_USER_NS or its sysctls"},
};

/* Steps whose failure is the machine's, and not of what the caller asked for. */
static const enum step of_machine[] = {
    STEP_IDS,   STEP_CGROUP, STEP_LIMITS, STEP_ZYGOTE,  STEP_NETWORK, STEP_CLONE,    STEP_IDMAP,   STEP_DEV,
    STEP_ENTER, STEP_WAIT,   STEP_DISK,   STEP_ROOT,    STEP_USR,     STEP_WRITABLE, STEP_FURNISH, STEP_TERMINAL,
    STEP_PROC,  STEP_MASKS,  STEP_PIVOT,  STEP_CONFINE, STEP_FILTER,  STEP_INIT,
};

static void append(struct error *err, const char *words)
{
    size_t used = strlen(err->message);

    (void)snprintf(err->message + used, sizeof err->message - used, "; %s", words);
}

void advice_add(uint32_t step, struct error *err)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (table[i].step != step || table[i].err != err->err)
            continue;
        append(err, table[i].words);
        return;
    }
}

void advice_add_doctor(uint32_t step, struct error *err)
{
    bool is_machines = err->code == ERROR_UNSUPPORTED;

    for (size_t i = 0; i < sizeof of_machine / sizeof *of_machine; i++)
        is_machines = is_machines || of_machine[i] == step;
    /* A symlink or a file where a folder should be: of the caller's own. */
    is_machines = is_machines && err->err != ELOOP && err->err != ENOTDIR;
    if (is_machines)
        append(err, "'sudo hutch doctor' says what this machine lacks");
}
