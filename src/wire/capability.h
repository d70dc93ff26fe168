/*
 * capability: the sets of capabilities there are in a sandbox, and dropping to one of them.
 *
 * Used by the keeper's child (down to init's) and by init (down to a command's). All of them count only inside the
 * sandbox's user namespace.
 */
#pragma once

#include "base/error.h"

#include <linux/capability.h>
#include <stdint.h>

#define CAPABILITY(name) (UINT64_C(1) << (name))

/* What package managers need, for a command that runs as root. */
#define CAPABILITIES_ROOT                                                                                              \
    (CAPABILITY(CAP_CHOWN) | CAPABILITY(CAP_DAC_OVERRIDE) | CAPABILITY(CAP_FOWNER) | CAPABILITY(CAP_FSETID) |          \
     CAPABILITY(CAP_KILL) | CAPABILITY(CAP_SETUID) | CAPABILITY(CAP_SETGID))

/* Init: the same, to hand on and to move files with, and SETPCAP to take them away from everybody else. */
#define CAPABILITIES_INIT (CAPABILITIES_ROOT | CAPABILITY(CAP_SETPCAP))

#define CAPABILITIES_NONE UINT64_C(0)
#define CAPABILITIES_ALL UINT64_MAX

/* Drop from the bounding set all of `from` but `allowed`. Needs CAP_SETPCAP. 0 or -errno. */
_must_use_ int capability_bound(uint64_t from, uint64_t allowed);

/* Permitted and effective: exactly `allowed`; inheritable and ambient: none. 0 or -errno. */
_must_use_ int capability_set(uint64_t allowed);
