/*
 * rootfs: the sandbox's file system, step by step, from the child's working folder outwards to its new root.
 *
 * NAMESPACE ROOT of its sandbox. Each step returns 0 or a negative errno and leaves what failed in `detail`.
 */
#pragma once

#include "keeper/spawn.h"

struct rootfs {
    const struct spawn *spawn;
    int root_fd;      /* the new root, once there is one */
    int dev_fd;       /* its /dev, once there is one; the caller's */
    int proc_fd;      /* its /proc, once there is one */
    int init_proc_fd; /* init's own, where the sandbox's is read-only; else -1 */
    char detail[128];
};

_must_use_ int rootfs_disk(struct rootfs *rootfs);
_must_use_ int rootfs_root(struct rootfs *rootfs);
_must_use_ int rootfs_usr(struct rootfs *rootfs);
_must_use_ int rootfs_writable(struct rootfs *rootfs);
_must_use_ int rootfs_dev(struct rootfs *rootfs, int dev_fd);
_must_use_ int rootfs_terminals(struct rootfs *rootfs);
_must_use_ int rootfs_dirs(struct rootfs *rootfs);
_must_use_ int rootfs_proc(struct rootfs *rootfs, int made_fd); /* -1: none was made */
_must_use_ int rootfs_masks(struct rootfs *rootfs, bool is_masked);
_must_use_ int rootfs_pivot(struct rootfs *rootfs);
