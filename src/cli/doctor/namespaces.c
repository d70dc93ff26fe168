#include "base/cleanup.h"
#include "base/fd.h"
#include "base/sys.h"
#include "cli/doctor/nest.h"
#include "cli/doctor/probes.h"
#include "keeper/ids.h"
#include "keeper/instance.h"
#include "keeper/keeper.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

static const struct kind {
    const char *name; /* of the check's argument, and in user.max_NAME_namespaces */
    unsigned long flag;
    const char *config;
} kinds[] = {
    {"user", CLONE_NEWUSER, "CONFIG_USER_NS"},     {"pid", CLONE_NEWPID, "CONFIG_PID_NS"},
    {"mnt", CLONE_NEWNS, "CONFIG_NAMESPACES"},     {"net", CLONE_NEWNET, "CONFIG_NET_NS"},
    {"ipc", CLONE_NEWIPC, "CONFIG_IPC_NS"},        {"uts", CLONE_NEWUTS, "CONFIG_UTS_NS"},
    {"cgroup", CLONE_NEWCGROUP, "CONFIG_CGROUPS"},
};

static const struct kind *kind_of(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    }
    abort(); /* the table of checks names another */
}

static void do_nothing(void *context)
{
    (void)context;
}

static int clone_plain(unsigned long flag)
{
    pid_t pid = sys_clone(flag | SIGCHLD);
    int status = -1;

    if (pid == 0)
        _exit(0);
    if (pid < 0)
        return -errno;
    return waitpid(pid, &status, 0) == pid && status == 0 ? 0 : -ECHILD;
}

/* A user namespace is one with ids; the others belong to the host's, as a sandbox's network namespace does. */
static int clone_with(const struct kind *kind)
{
    struct nest nest;

    if (kind->flag != CLONE_NEWUSER)
        return clone_plain(kind->flag);
    int r = nest_start(0, do_nothing, NULL, &nest);
    return r < 0 ? r : nest_finish(&nest);
}

/* By what the kernel said: a limit, a kernel without it, or somebody who does not let us. */
static void mend_namespace(struct probe *probe, const struct kind *kind, int error)
{
    if (error == ENOSPC || error == EUSERS)
        finding_mend(probe, "sysctl -w user.max_%s_namespaces=63556", kind->name);
    else if (error == EINVAL || error == ENOSYS)
        finding_mend(probe, "boot a kernel with %s=y (Debian: apt-get install linux-image-amd64)", kind->config);
    else if (kind->flag == CLONE_NEWUSER)
        finding_mend(probe, "leave the chroot if there is one; sysctl -w kernel.unprivileged_userns_clone=1 "
                            "kernel.apparmor_restrict_unprivileged_userns=0");
}

void probe_namespace(struct probe *probe)
{
    const struct kind *kind = kind_of(probe->check->argument);
    char path[64];
    char most[32];

    (void)snprintf(path, sizeof path, "/proc/sys/user/max_%s_namespaces", kind->name);
    ssize_t n = fd_read_file(AT_FDCWD, path, most, sizeof most);
    most[n > 0 ? strcspn(most, "\n") : 0] = '\0';
    int r = clone_with(kind);
    if (r == 0) {
        finding_yes(probe, "up to %s", n > 0 ? most : "what memory holds");
        return;
    }
    finding_no(probe, -r, "cloning into one (user.max_%s_namespaces is %s)", kind->name, n > 0 ? most : "not there");
    mend_namespace(probe, kind, -r);
}

void probe_ids(struct probe *probe)
{
    struct instance instance;
    struct ids *ids = NULL;
    struct error err = {0};
    uint32_t first = 0;
    int r = instance_init(&instance, &err);

    if (r < 0) {
        finding_no(probe, 0, "%s", err.message);
        return;
    }
    r = ids_new(instance.run_fd, KEEPER_ID_FIRST, KEEPER_ID_LAST, &ids, &err);
    if (r == 0)
        r = ids_claim(ids, &first, &err);
    if (r < 0)
        finding_no(probe, 0, "%s", err.message);
    else
        finding_yes(probe, "%u ranges of %d in %u to %u, beside /etc/subuid and /etc/subgid", ids_available(ids) + 1,
                    IDS_PER_SANDBOX, (unsigned)KEEPER_ID_FIRST, (unsigned)KEEPER_ID_LAST);
    ids_free(ids);
    instance_release(&instance);
}
