/*
 * world: the zygote's own mount namespace, with nothing in it that a clone would have to copy and then throw away.
 *
 * AS ROOT. Every sandbox starts with a copy of it. On an ordinary host that would be dozens of mounts; here it is an
 * empty root with a folder to mount the disk on, and /proc, which the kernel wants to see before it makes another.
 */
#pragma once

#include "base/error.h"

/* Leave the host's mounts for good. 0 or -errno. */
_must_use_ int world_leave_host(void);
