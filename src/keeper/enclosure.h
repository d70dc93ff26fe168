/*
 * enclosure: the cgroup of a service, so that it uses no more than it may and ends as a whole.
 *
 * AS ROOT. The daemon has one for its gateway. Each gateway gets a new one: into a cgroup that was killed once
 * Linux 6.18 clones nothing that lives (it compares how often the parent's own was).
 */
#pragma once

#include "keeper/cgroup.h"

struct enclosure {
    struct cgroups *cgroups; /* the keeper's; NULL: there is none */
    struct cgroup_entry entry;
    unsigned count; /* of those that there were */
    char name[CGROUP_NAME_SIZE];
};

#define ENCLOSURE_EMPTY ((struct enclosure){.entry = {.dir = -1}})

/* It carries the instance's id, so that a sweep finds it should we be killed. */
_must_use_ int enclosure_open(struct enclosure *enclosure, struct cgroups *cgroups, const char *instance_id,
                              const char *service, struct error *err);

/* At its start, and whenever they change. */
_must_use_ int enclosure_limit(struct enclosure *enclosure, uint64_t memory_bytes, uint32_t processes,
                               struct error *err);

/* Whether the kernel has killed in it for want of memory. */
bool enclosure_was_too_small(const struct enclosure *enclosure);

/* End everything in it, wait a moment for that, and remove it. The next sweep finds what is left even so. */
void enclosure_close(struct enclosure *enclosure);
