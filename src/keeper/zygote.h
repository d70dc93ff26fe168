/*
 * zygote: the process that clones sandboxes, so that the keeper's own size never slows a clone.
 *
 * AS ROOT. The keeper forks it before it has many descriptors and sends it SPAWN; it answers SPAWNED with a pidfd. The
 * sandbox's first process becomes the keeper's child (CLONE_PARENT), so that the keeper reaps it. The zygote makes the
 * network namespace of the next sandbox while it has nothing else to do. That namespace belongs to the host's user
 * namespace: root in the sandbox has no power over it.
 *
 * After a single run it cleans up behind the caller, who need not wait for that (CLEAN). It ends with its socket.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>

/* Fork it. `ahead`: make network namespaces ahead for a next sandbox (a daemon), or just one (a single run). */
_must_use_ int zygote_start(bool ahead, int *ret_socket, int *ret_pidfd, struct error *err);
