#include "keeper/enclosure.h"

#include <stdio.h>
#include <unistd.h>

enum { REMOVE_MS = 100 };

int enclosure_open(struct enclosure *enclosure, struct cgroups *cgroups, const char *instance_id, const char *service,
                   struct error *err)
{
    int n = snprintf(enclosure->name, sizeof enclosure->name, "%s-%s-%u", instance_id, service, ++enclosure->count);

    if (n < 0 || (size_t)n >= sizeof enclosure->name)
        return error_set(err, ERROR_INVALID, ENAMETOOLONG, "naming the cgroup of %s", service);
    int r = cgroup_create(cgroups, enclosure->name, &enclosure->entry, err);
    if (r < 0)
        return r;
    enclosure->cgroups = cgroups;
    return 0;
}

int enclosure_limit(struct enclosure *enclosure, uint64_t memory_bytes, uint32_t processes, struct error *err)
{
    struct cgroup_limits limits = {.memory_bytes = memory_bytes, .processes = processes};

    return cgroup_limit(enclosure->cgroups, enclosure->name, &limits, err);
}

bool enclosure_was_too_small(const struct enclosure *enclosure)
{
    return enclosure->cgroups != NULL && cgroup_oom_kills(enclosure->cgroups, enclosure->name) > 0;
}

void enclosure_close(struct enclosure *enclosure)
{
    if (enclosure->cgroups == NULL)
        return;
    ignore_result(cgroup_kill(enclosure->cgroups, enclosure->name));
    for (int ms = 0; cgroup_remove(enclosure->cgroups, enclosure->name) < 0 && ms < REMOVE_MS; ms++)
        (void)usleep(1000);
    cgroup_entry_release(&enclosure->entry);
    enclosure->cgroups = NULL;
}
