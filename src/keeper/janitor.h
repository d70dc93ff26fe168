/*
 * janitor: ends and removes a single run's sandbox after its caller has gone on.
 *
 * AS ROOT, in a process of its own. The instance and the ids stay claimed through the descriptors it inherits until
 * nothing is left; should it be killed, the next one's sweep finds the rest.
 */
#pragma once

#include "keeper/cgroup.h"
#include "keeper/instance.h"

/* Fork it. The caller exits next. */
_must_use_ int janitor_start(struct instance *instance, struct cgroups *cgroups, const char *cgroup, int pidfd,
                             struct error *err);

/* Remove what belongs to instances that nobody holds. */
void janitor_sweep(const struct instance *instance, struct cgroups *cgroups);
