#include "base/cleanup.h"
#include "base/fd.h"
#include "base/sys.h"
#include "cli/doctor/probes.h"
#include "keeper/cgroup.h"
#include "keeper/instance.h"

#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/sysinfo.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#define TREE "/sys/fs/cgroup"

#define MEND_V2                                                                                                        \
    "add systemd.unified_cgroup_hierarchy=1 to GRUB_CMDLINE_LINUX in /etc/default/grub; then: update-grub && reboot"

enum { FREEZE_LIMIT_MS = 2000 };

static bool is_kind(const char *path, unsigned long magic)
{
    struct statfs st;

    return statfs(path, &st) == 0 && (unsigned long)st.f_type == magic;
}

static bool is_v2(void)
{
    return is_kind(TREE, CGROUP2_SUPER_MAGIC);
}

void probe_cgroup_tree(struct probe *probe)
{
    if (is_v2()) {
        finding_yes(probe, "v2 at " TREE);
    } else if (is_kind(TREE "/unified", CGROUP2_SUPER_MAGIC)) {
        finding_yes(probe, "hybrid: v1 controllers, v2 at " TREE "/unified");
    } else if (is_kind(TREE "/memory", CGROUP_SUPER_MAGIC)) {
        finding_no(probe, 0, "v1 alone: there is no v2 tree at " TREE " or " TREE "/unified");
        finding_mend(probe, MEND_V2);
    } else {
        finding_no(probe, 0, "no cgroup tree at " TREE);
    }
}

/* A cgroup with limits, as a sandbox's, that carries an instance's id: should we be killed, a sweep finds it. */
struct scratch {
    struct instance instance;
    struct cgroups *cgroups;
    struct cgroup_entry entry;
    char name[CGROUP_NAME_SIZE];
    bool has_cgroup;
};

static int scratch_make(struct scratch *scratch, struct error *err)
{
    static const struct cgroup_limits limits = {
        .memory_bytes = 64 << 20, .processes = 16, .cpu_milli = 1000, .cpu_weight = 100};

    *scratch = (struct scratch){.entry = {.dir = -1}};
    int r = instance_init(&scratch->instance, err);
    if (r == 0)
        r = cgroups_new(&scratch->cgroups, err);
    if (r < 0)
        return r;
    (void)snprintf(scratch->name, sizeof scratch->name, "%s-1", scratch->instance.id);
    r = cgroup_create(scratch->cgroups, scratch->name, &scratch->entry, err);
    scratch->has_cgroup = r == 0;
    return r < 0 ? r : cgroup_furnish(scratch->cgroups, scratch->name, &limits, 0, err);
}

static void scratch_release(struct scratch *scratch)
{
    cgroup_entry_release(&scratch->entry);
    for (int ms = 0; scratch->has_cgroup && ms < 2000; ms++) {
        if (cgroup_remove(scratch->cgroups, scratch->name) == 0)
            break;
        (void)usleep(1000);
    }
    cgroups_free(scratch->cgroups);
    instance_release(&scratch->instance);
}

/* A process in it that does nothing. Its pid or -errno. */
static pid_t scratch_clone(const struct scratch *scratch)
{
    struct clone_args args = {
        .flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD, .cgroup = (uint64_t)(unsigned)scratch->entry.dir};
    pid_t pid = sys_clone3(&args);

    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            (void)pause();
    }
    return pid < 0 ? -errno : pid;
}

/* Does the line "KEY NUMBER" in this file of the cgroup say this number? */
static bool scratch_says(const struct scratch *scratch, const char *file, const char *line)
{
    char text[1024];

    return fd_read_file(scratch->entry.dir, file, text, sizeof text) > 0 && strstr(text, line) != NULL;
}

static void end(pid_t pid)
{
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
}

/* Without swap there is nothing to limit. */
void probe_cgroup_swap(struct probe *probe)
{
    const char *file = is_v2() ? TREE "/hutch/memory.swap.max" : TREE "/memory/memory.memsw.limit_in_bytes";
    struct sysinfo info;
    struct cgroups *cgroups = NULL;

    /* The folder that cgroups of sandboxes lie in has the file; the root of a v2 tree never has. */
    if (cgroups_new(&cgroups, NULL) == 0)
        cgroups_free(cgroups);
    if (access(file, F_OK) == 0)
        finding_yes(probe, "can be limited");
    else if (sysinfo(&info) == 0 && info.totalswap == 0)
        finding_yes(probe, "can't be limited, but there is none");
    else
        finding_no(probe, 0, "there is swap, and no %s", strrchr(file, '/') + 1);
}

/* The first controller that this kernel does not offer, or NULL. */
static const char *missing_controller(void)
{
    static const char *const controllers[] = {"memory", "pids", "cpu"};
    char offered[256] = " ";
    char word[32];
    ssize_t n = fd_read_file(AT_FDCWD, TREE "/cgroup.controllers", offered + 1, sizeof offered - 2);

    offered[n > 0 ? 1 + strcspn(offered + 1, "\n") : 1] = ' ';
    for (size_t i = 0; i < sizeof controllers / sizeof *controllers; i++) {
        if (is_v2())
            (void)snprintf(word, sizeof word, " %s ", controllers[i]);
        else
            (void)snprintf(word, sizeof word, TREE "/%s", controllers[i]);
        if (is_v2() ? strstr(offered, word) == NULL : !is_kind(word, CGROUP_SUPER_MAGIC))
            return controllers[i];
    }
    return NULL;
}

void probe_cgroup_limits(struct probe *probe)
{
    struct scratch scratch;
    struct error err = {0};
    const char *missing = missing_controller();

    if (missing != NULL) {
        finding_no(probe, 0, "the controller %s is not offered", missing);
        finding_mend(probe, "take cgroup_disable=%s off the kernel's command line, or add cgroup_enable=%s to it",
                     missing, missing);
        return;
    }
    if (scratch_make(&scratch, &err) < 0)
        finding_no(probe, 0, "%s", err.message);
    else
        finding_yes(probe, "memory, pids and cpu%s", is_v2() ? "" : ", in v1");
    scratch_release(&scratch);
}

/* Make a cgroup and have a process cloned into it. 0, or -errno with the finding told and nothing left. */
static int scratch_start(struct probe *probe, struct scratch *scratch, pid_t *ret_pid)
{
    struct error err = {0};
    int r = scratch_make(scratch, &err);

    if (r < 0) {
        finding_no(probe, 0, "%s", err.message);
    } else {
        pid_t pid = scratch_clone(scratch);
        *ret_pid = pid;
        r = pid < 0 ? (int)pid : 0;
        if (r < 0)
            finding_no(probe, -r, "clone3 with CLONE_INTO_CGROUP");
        if (r == -EACCES || r == -ENOENT || r == -EPERM)
            finding_mend(probe, "run Hutch on the host, in the machine's own cgroup namespace");
    }
    if (r < 0)
        scratch_release(scratch);
    return r;
}

void probe_cgroup_clone(struct probe *probe)
{
    struct scratch scratch;
    pid_t pid;

    if (scratch_start(probe, &scratch, &pid) < 0)
        return;
    if (scratch_says(&scratch, "cgroup.events", "populated 1"))
        finding_yes(probe, "a process was cloned into a cgroup");
    else
        finding_no(probe, 0, "a process was cloned, but not into the cgroup");
    end(pid);
    scratch_release(&scratch);
}

void probe_cgroup_kill(struct probe *probe)
{
    struct scratch scratch;
    pid_t pid;

    if (scratch_start(probe, &scratch, &pid) < 0)
        return;
    int r = cgroup_kill(scratch.cgroups, scratch.name);
    if (r < 0) {
        finding_no(probe, -r, "writing to cgroup.kill");
        end(pid);
    } else if (waitpid(pid, NULL, 0) == pid) {
        finding_yes(probe, "cgroup.kill ends all processes of a cgroup");
    }
    scratch_release(&scratch);
}

static bool is_frozen_soon(const struct scratch *scratch)
{
    for (int ms = 0; ms < FREEZE_LIMIT_MS; ms++) {
        if (scratch_says(scratch, "cgroup.events", "frozen 1"))
            return true;
        (void)usleep(1000);
    }
    return false;
}

void probe_cgroup_freeze(struct probe *probe)
{
    struct scratch scratch;
    struct error err = {0};
    pid_t pid;

    if (scratch_start(probe, &scratch, &pid) < 0)
        return;
    if (cgroup_freeze(scratch.cgroups, scratch.name, true, &err) < 0)
        finding_no(probe, 0, "%s", err.message);
    else if (!is_frozen_soon(&scratch))
        finding_no(probe, 0, "a cgroup was not frozen within %d ms", FREEZE_LIMIT_MS);
    else
        finding_yes(probe, "cgroup.freeze stops all processes of a cgroup");
    end(pid);
    scratch_release(&scratch);
}
