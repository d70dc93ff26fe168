/*
 * confine: what every process that init starts gives up before it does anything for anybody.
 *
 * INSIDE THE SANDBOX. Also called with init's memory borrowed, between clone and execve: nothing but system calls.
 */
#pragma once

#include "base/error.h"

#include <stdint.h>

/* Where the sandbox's /proc is read-only, init was given another as WIRE_PROC_FD; have the usual one there else. Once,
 * before anything is started. 0 or -errno. */
_must_use_ int confine_open_proc(void);

/* No descriptor but 0 to 2, and the first to go when memory runs out. 0 or -errno. */
_must_use_ int confine_apart(void);

/* This user and group, no others, and their capabilities: the few of a root, or none. 0 or -errno. */
_must_use_ int confine_user(uint32_t uid, uint32_t gid);
