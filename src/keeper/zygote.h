/*
 * zygote: the process that clones a daemon's sandboxes, so that the keeper's own size never slows a clone.
 *
 * AS ROOT. The keeper forks it before it has many descriptors and sends it SPAWN; it answers SPAWNED with a pidfd. The
 * sandbox's first process becomes the keeper's child (CLONE_PARENT), so that the keeper reaps it. The zygote makes the
 * network namespace of the next sandbox while it has nothing else to do. It ends with its socket.
 */
#pragma once

#include "base/error.h"

_must_use_ int zygote_start(int *ret_socket, int *ret_pidfd, struct error *err);
