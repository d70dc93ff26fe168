/*
 * clone: the moment a sandbox comes into being: its network namespace, the clone into all others, its ids.
 *
 * AS ROOT. Called by the zygote of a daemon, or by the keeper of a single run itself.
 */
#pragma once

#include "keeper/spawn.h"

/*
 * Move the caller into a new network namespace, which the next clone inherits. It belongs to the host's user namespace:
 * root in the sandbox has no power over it. 0 or -errno.
 */
_must_use_ int clone_network(void);

/*
 * Clone the child and let it go on. `flags`: 0, or CLONE_PARENT to make it the caller's sibling. Fills step, pid and
 * times of `spawned`. 0, or -errno with spawned->step as the step that failed; a process that is there then is to be
 * ended.
 */
_must_use_ int clone_sandbox(const struct spawn *spawn, uint64_t flags, struct wire_spawned *spawned, int *ret_pidfd);
