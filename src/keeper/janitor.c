#include "keeper/janitor.h"

#include "base/cleanup.h"
#include "base/sys.h"

#include <poll.h>

enum { LIMIT_MS = 10000 };

static bool sweep_instance(void *context, const char *id)
{
    return cgroups_sweep(context, id);
}

void janitor_sweep(const struct instance *instance, struct cgroups *cgroups)
{
    instance_sweep(instance, sweep_instance, cgroups);
}

static _Noreturn void clean(struct instance *instance, struct cgroups *cgroups, const char *cgroup, int pidfd)
{
    struct pollfd end = {.fd = pidfd, .events = POLLIN};

    /* The caller's pipes and terminal must not stay open because of us. */
    (void)setsid();
    (void)sys_close_range(0, 2, 0);
    ignore_result(cgroup_kill(cgroups, cgroup));
    (void)poll(&end, 1, LIMIT_MS);
    for (int attempt = 0; attempt < LIMIT_MS; attempt++) {
        if (cgroup_remove(cgroups, cgroup) == 0) {
            janitor_sweep(instance, cgroups);
            instance_release(instance);
            _exit(0);
        }
        (void)usleep(1000);
    }
    _exit(1);
}

int janitor_start(struct instance *instance, struct cgroups *cgroups, const char *cgroup, int pidfd, struct error *err)
{
    struct clone_args args = {.exit_signal = SIGCHLD};
    pid_t pid = sys_clone3(&args);

    if (pid < 0)
        return error_errno(err, "starting the janitor");
    if (pid == 0)
        clean(instance, cgroups, cgroup, pidfd);
    return 0;
}
