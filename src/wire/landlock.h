/*
 * landlock: domains that a process enters and never leaves, nor do its children.
 *
 * Used by init for the scopes of its sandbox, by the keeper's child for a list of programs, and by the doctor. What a
 * kernel has is found by asking it, never by its version: Landlock itself may be missing, switched off at boot, or
 * older than scopes (Linux 6.12).
 */
#pragma once

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

/* As of version 6; the kernel headers of the builder may be older. */
struct landlock_rules {
    uint64_t fs;     /* LANDLOCK_ACCESS_FS_*: what is refused unless a rule allows it */
    uint64_t net;    /* LANDLOCK_ACCESS_NET_* */
    uint64_t scoped; /* what stays inside the domain */
};

enum {
    LANDLOCK_SCOPED_SOCKETS = 1,
    LANDLOCK_SCOPED_SIGNALS = 2,
    LANDLOCK_VERSION_OF_REFER = 2,
    LANDLOCK_VERSION_OF_SCOPES = 6
};

/* The version of its interface, or -errno: -ENOSYS when it is not there, -EOPNOTSUPP when it was not chosen at boot. */
_must_use_ int landlock_version(void);

/* A domain to be, with nothing allowed in it yet: a descriptor or -errno. A kernel without scopes says -E2BIG. */
_must_use_ int landlock_new(const struct landlock_rules *rules);

/* Allow these accesses to a file, or to a folder and all that is in it. 0 or -errno. */
_must_use_ int landlock_allow(int fd, uint64_t accesses, int path_fd);

/* Put the calling thread into it. Needs no_new_privs. 0 or -errno. */
_must_use_ int landlock_enter(int fd);
