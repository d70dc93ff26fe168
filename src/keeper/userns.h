/*
 * userns: writing id maps, and user namespaces that exist only to describe an id map to the kernel.
 *
 * AS ROOT.
 */
#pragma once

#include "base/error.h"

#include <stdint.h>
#include <sys/types.h>

/* `count` ids from `inside` in the namespace stand for those from `outside` on. */
struct userns_map {
    uint32_t inside;
    uint32_t outside;
    uint32_t count;
};

/* Give the user namespace of `pid` its maps. 0 or -errno. */
_must_use_ int userns_write_maps(pid_t pid, struct userns_map uids, struct userns_map gids);

/* The user namespace of `pid`. The descriptor or -errno. */
_must_use_ int userns_open(pid_t pid);

/* A user namespace with these maps and nobody in it, for mnt_idmap(). */
_must_use_ int userns_new(struct userns_map uids, struct userns_map gids, int *ret_fd, struct error *err);
