/*
 * instance: this keeper's identity on the machine, and the sweep of those that died.
 *
 * AS ROOT. Every keeper, `hutch run` included, holds a lock on /run/hutch/instances/ID. Its cgroups carry that id, so
 * whatever belongs to an id whose lock nobody holds is left over from a killed keeper and may be removed.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>

enum { INSTANCE_ID_SIZE = 17 };

struct instance {
    int run_fd;       /* /run/hutch */
    int instances_fd; /* /run/hutch/instances */
    int lock_fd;
    char id[INSTANCE_ID_SIZE];
};

#define INSTANCE_EMPTY ((struct instance){.run_fd = -1, .instances_fd = -1, .lock_fd = -1})

/* Where the folder of instances is: it also serves as a mount point inside each sandbox-to-be. */
#define INSTANCES_FOLDER "/run/hutch/instances"

_must_use_ int instance_init(struct instance *instance, struct error *err);

/* Speak for an instance whose lock another descriptor of ours holds; instance_forget() removes its name. 0 or -errno.
 */
_must_use_ int instance_adopt(struct instance *instance, const char *id);
_must_use_ int instance_forget(struct instance *instance);

/* Ends the claim. What carried the id must be gone before. */
void instance_release(struct instance *instance);

/* Call `remove` for each id that nobody holds, while holding it; the id ends when it answers that nothing is left. */
void instance_sweep(const struct instance *instance, bool (*remove)(void *context, const char *id), void *context);
