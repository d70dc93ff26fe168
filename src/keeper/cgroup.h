/*
 * cgroup: one cgroup per sandbox, with its limits, in a pure v2 tree or a hybrid one.
 *
 * AS ROOT. Pure v2 holds everything. In a hybrid tree the controllers are v1 hierarchies while the v2 tree beside them
 * carries kill, freeze, CPU time and the cgroups that init makes per command. Pure v1 is refused. A pid is never
 * written to cgroup.procs (that waits for every CPU, 6 ms on an idle machine): the child is cloned into the v2 cgroup
 * and writes 0 to the v1 `tasks` files it was handed.
 *
 * All cgroups are named "INSTANCE-SANDBOX" below one folder "hutch" in each hierarchy, which stays.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CGROUP_NAME_SIZE = 48, CGROUP_TASKS_MAX = 3 };

struct cgroups;

struct cgroup_limits {
    uint64_t memory_bytes;
    uint32_t processes;  /* without init */
    uint32_t cpu_milli;  /* 0: as many as there are */
    uint32_t cpu_weight; /* 1 to 10000, 0: the default of 100 */
};

struct cgroup_usage {
    uint64_t cpu_us;
    uint64_t memory_bytes;
    uint64_t memory_peak_bytes;
    uint32_t processes;
    uint32_t processes_peak;
    uint32_t processes_refused;
    uint32_t oom_kills;
};

/* What the child needs to get in. The caller closes them with cgroup_entry_release(). */
struct cgroup_entry {
    int dir; /* of the v2 tree, for CLONE_INTO_CGROUP */
    int tasks[CGROUP_TASKS_MAX];
    size_t task_count;
};

_must_use_ int cgroups_new(struct cgroups **ret_cgroups, struct error *err);
void cgroups_free(struct cgroups *cgroups);

/* The folder that the memory limits are in, and whether that is a v1 hierarchy. */
int cgroups_memory_fd(const struct cgroups *cgroups);
bool cgroups_are_hybrid(const struct cgroups *cgroups);

/* Make the cgroup, without limits; on failure nothing is left. */
_must_use_ int cgroup_create(struct cgroups *cgroups, const char *name, struct cgroup_entry *ret_entry,
                             struct error *err);
void cgroup_entry_release(struct cgroup_entry *entry);

/* A new cgroup's first limits, and `owner` may make cgroups below it. To be done before anything untrusted is in it. */
_must_use_ int cgroup_furnish(struct cgroups *cgroups, const char *name, const struct cgroup_limits *limits,
                              uint32_t owner, struct error *err);

/* Init's own view: a detached mount of just this cgroup, so that ".." leads nowhere. */
_must_use_ int cgroup_view(struct cgroups *cgroups, const char *name, int *ret_fd, struct error *err);

_must_use_ int cgroup_limit(struct cgroups *cgroups, const char *name, const struct cgroup_limits *limits,
                            struct error *err);
_must_use_ int cgroup_freeze(struct cgroups *cgroups, const char *name, bool frozen, struct error *err);
_must_use_ int cgroup_kill(struct cgroups *cgroups, const char *name);
void cgroup_usage(struct cgroups *cgroups, const char *name, struct cgroup_usage *ret_usage);

/* How often the kernel killed for memory in it, and how often it refused a process. Never fails: 0 when unknown. */
uint32_t cgroup_oom_kills(struct cgroups *cgroups, const char *name);
uint32_t cgroup_processes_refused(struct cgroups *cgroups, const char *name);

/*
 * Cached pages that a sandbox was charged for would keep its memory cgroup alive when it is removed. Giving them back
 * takes a second for 3 GB that are not yet on the disk. Only when it is empty.
 */
bool cgroup_wants_reclaim(const struct cgroups *cgroups, const char *name);
void cgroup_reclaim(const struct cgroups *cgroups, const char *name);

/* The same for a helper, which has the descriptor below, and none of `cgroups`. */
void cgroup_reclaim_in(const struct cgroups *cgroups, int memory_fd, const char *name);

/* Remove an empty cgroup and those below it. 0, or -EBUSY while processes are still ending. */
_must_use_ int cgroup_remove(struct cgroups *cgroups, const char *name);

/* Kill and remove everything of an instance that is no more. True when all of it is gone. */
bool cgroups_sweep(struct cgroups *cgroups, const char *instance_id);
