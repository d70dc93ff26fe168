/*
 * oom: hears from the kernel in which cgroups it may have killed for want of memory.
 *
 * AS ROOT. With cgroup v2 one inotify watches `memory.events` of all of them, and says whose changed. With v1 a cgroup
 * signals an eventfd before it has killed; one of them per sandbox would be too many descriptors, so OOM_GROUPS of them
 * are shared: a signal says that it was one of a group.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

enum { OOM_GROUPS = 64 };

struct oom {
    bool hybrid;
    int memory_fd;                 /* the folder that the cgroups are in; the owner's */
    int fds[OOM_GROUPS];           /* v1: eventfds; v2: the inotify, and no others; made when first wanted */
    uint64_t removals[OOM_GROUPS]; /* of watched cgroups, whose signals are still to come (v1) */
    int last_group;
};

void oom_init(struct oom *oom, int memory_fd, bool hybrid);
void oom_release(struct oom *oom);

/* `ret_watch` is what oom_take() calls it; several may have the same. */
_must_use_ int oom_watch(struct oom *oom, const char *cgroup, int *ret_watch, struct error *err);

/* Once the cgroup was removed. */
void oom_unwatch(struct oom *oom, int watch);

/* The descriptor that it is heard on, and its number below OOM_GROUPS. */
int oom_fd(const struct oom *oom, int group);
int oom_group_of(const struct oom *oom, int watch);

/*
 * Read what there is on a group's descriptor: hit(context, watch) for each that may have been killed in, not for those
 * that were only removed; -1 is any of them.
 */
void oom_take(struct oom *oom, int group, void (*hit)(void *context, int watch), void *context);
