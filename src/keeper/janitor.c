#include "keeper/janitor.h"

#include "base/cleanup.h"
#include "keeper/disk.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

enum { LIMIT_MS = 10000, ATTEMPTS = 10 };

static bool sweep_instance(void *context, const char *id)
{
    return cgroups_sweep(context, id);
}

void janitor_sweep(const struct instance *instance, struct cgroups *cgroups)
{
    instance_sweep(instance, sweep_instance, cgroups);
}

static int remove_sandbox(struct cgroups *cgroups, const char *cgroup, int pidfd)
{
    struct pollfd end = {.fd = pidfd, .events = POLLIN};
    int r = -EBUSY;

    ignore_result(cgroup_kill(cgroups, cgroup));
    (void)poll(&end, 1, LIMIT_MS);
    cgroup_reclaim(cgroups, cgroup);
    for (int attempt = 0; attempt < LIMIT_MS && (r = cgroup_remove(cgroups, cgroup)) < 0; attempt++)
        (void)usleep(1000);
    return r;
}

static int clean_up(const struct wire_clean *clean, int pidfd)
{
    struct instance instance = INSTANCE_EMPTY;
    struct cgroups *cgroups = NULL;
    int r = cgroups_new(&cgroups, NULL);

    if (r == 0)
        r = remove_sandbox(cgroups, clean->cgroup.text, pidfd);
    if (r == 0)
        r = instance_adopt(&instance, clean->instance.text);
    if (r == 0) {
        janitor_sweep(&instance, cgroups);
        r = instance_forget(&instance);
    }
    cgroups_free(cgroups);
    return r;
}

void janitor_clean(const struct wire_clean *clean, int pidfd, int *disk_fd)
{
    if (disk_fd != NULL) {
        disk_discard(*disk_fd);
        close_fd(disk_fd);
    }
    /* Nobody waits, and want of memory or descriptors passes. Should it not, the next sweep finds the rest. */
    for (int attempt = 0; attempt < ATTEMPTS && clean_up(clean, pidfd) < 0; attempt++)
        (void)usleep(10000);
}
