/*
 * release-agent: cgroup v1 runs a program as the host's root when a cgroup empties (CVE-2022-0492).
 */
#include "attack/attack.h"
#include "base/sys.h"

#include <fcntl.h>

static void inside(struct attempt *attempt)
{
    static const char *const files[] = {"/sys/fs/cgroup/memory/release_agent", "/sys/fs/cgroup/systemd/release_agent",
                                        "/sys/fs/cgroup/pids/notify_on_release", "/sys/fs/cgroup/cgroup.procs"};

    TRY(attempt, "mounting cgroup v1", sys_mount("none", "/tmp", "cgroup", 0), EPERM, ENOSYS);
    TRY(attempt, "in a namespace", syscall(SYS_unshare, CLONE_NEWUSER | CLONE_NEWCGROUP), EPERM, ENOSYS);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        TRY(attempt, files[i], open(files[i], O_WRONLY | O_CLOEXEC), ENOENT);
}

const struct attack attack_release_agent = {
    .name = "release-agent",
    .tries = "a program for the host to run, by cgroup v1",
    .group = ATTACK_FILES,
    .control = CONTROL_APART,
    .inside = inside,
};
