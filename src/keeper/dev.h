/*
 * dev: a sandbox's /dev, as a detached, read-only tmpfs of its own.
 *
 * AS ROOT. The file system belongs to the host's user namespace: device nodes on one that belongs to the sandbox's
 * would not open. It is not shared between sandboxes: a lock on /dev/null would be seen by both.
 */
#pragma once

#include "base/error.h"

_must_use_ int dev_new(int *ret_fd, struct error *err);
