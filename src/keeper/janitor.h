/*
 * janitor: removing what is left: of one sandbox after its caller has gone on, and of keepers that were killed.
 *
 * AS ROOT. For a single run the zygote does it, which has nothing else to do any more.
 */
#pragma once

#include "keeper/cgroup.h"
#include "keeper/instance.h"
#include "wire/wire.h"

/*
 * End and remove the sandbox of a CLEAN message; `disk_fd` is the root of its disk or NULL, and closed. The caller
 * holds the instance lock and the id claim through descriptors of its own until it exits; should it be killed before,
 * the next sweep finds the rest.
 */
void janitor_clean(const struct wire_clean *clean, int pidfd, int *disk_fd);

/* Remove what belongs to instances that nobody holds. */
void janitor_sweep(const struct instance *instance, struct cgroups *cgroups);
