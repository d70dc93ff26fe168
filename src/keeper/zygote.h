/*
 * zygote: the process that clones sandboxes.
 *
 * AS ROOT. The keeper forks it before it has many descriptors, so that its own size never slows a clone, and sends it
 * SPAWN; it answers SPAWNED with a pidfd. The sandbox's first process becomes the keeper's child (CLONE_PARENT), so
 * that the keeper reaps it. The zygote makes the network namespace of the next sandbox while it has nothing else to do.
 * That namespace belongs to the host's user namespace: root in the sandbox has no power over it.
 *
 * After a single run it cleans up behind the caller, who need not wait for that (CLEAN). It ends with its socket.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>

/* Fork it. `single`: for one sandbox; otherwise it makes network namespaces ahead. */
_must_use_ int zygote_start(bool single, int *ret_socket, int *ret_pidfd, struct error *err);
