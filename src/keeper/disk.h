/*
 * disk: a sandbox's writable space as a sparse ext4 image on a loop device, for more than belongs into memory and for
 * kernels whose tmpfs can't carry a writable root.
 *
 * AS ROOT. Making one takes a millisecond or two, the first of its size ten: a helper process does it. The image has
 * no name, so it ends with its last user: the file system, which ends with the sandbox's mount namespace. It has no
 * journal and is never checked: nobody reads it twice.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

enum { DISK_IMAGE_MIN_BYTES = 1 << 20 };

struct disk {
    int mount_fd;  /* the file system, attached nowhere; ids as on the disk */
    int folder_fd; /* its root, for disk_discard() */
};

#define DISK_EMPTY ((struct disk){-1, -1})

/* Can a tmpfs be the upper folder of a writable root? Since Linux 6.6. */
bool disk_tmpfs_has_attributes(void);

/* The mkfs.ext4 that prepares images, or NULL. */
const char *disk_find_mkfs(void);

/* An empty file system of this size. */
_must_use_ int disk_new(int state_fd, uint64_t bytes, uint64_t inodes, struct disk *ret_disk, struct error *err);

void disk_release(struct disk *disk);

/*
 * From now on every use of the file system fails: what was written and is not yet on the disk need not go there any
 * more (300 MiB: 12 ms instead of 220 until it is gone).
 */
void disk_discard(int folder_fd);
