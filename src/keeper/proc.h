/*
 * proc: a sandbox's /proc, with what is none of its business covered.
 *
 * AS ROOT in the keeper where the kernel can make a /proc for another pid namespace (Linux 6.17), while the child is at
 * work on other mounts; otherwise NAMESPACE ROOT in the child, once it has attached its own.
 */
#pragma once

#include "base/error.h"

#include <stddef.h>

/* Where an empty file and an empty folder to cover with are: both in mounts that stay as they are. */
struct proc_covers {
    int null_dir;  /* has the device "null" */
    int empty_dir; /* has the folder `empty` */
    const char *empty;
};

/* A new /proc of the pid namespace `pidns`, -1 for one's own, not attached. -EOPNOTSUPP when this kernel can't. */
_must_use_ int proc_new(int pidns, int *ret_fd);

/* Cover what this kernel has of it, but for sys. `ret_place` says where it failed. */
_must_use_ int proc_mask(int proc_fd, const struct proc_covers *covers, const char **ret_place);

/*
 * Of one that is attached, from inside: sys shows and takes what belongs to the namespaces of whoever opens it. Should
 * a filter ever miss a way to ask for a nested user namespace, the kernel still counts to zero. Then sys is read-only.
 */
_must_use_ int proc_seal(int proc_fd, const char **ret_place);

/* The pid namespace of a process. The descriptor, or -EOPNOTSUPP when this kernel can't say (before Linux 6.11). */
_must_use_ int proc_pidns_of(int pidfd);
