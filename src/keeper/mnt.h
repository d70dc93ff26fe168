/*
 * mnt: detached mounts, made and attached by descriptor so that no path of a template is ever walked by name.
 *
 * AS ROOT, and as namespace root in the sandbox's child. Functions return 0 or a negative errno; a failed call is
 * described by its caller, who knows the step.
 */
#pragma once

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

struct mnt_option {
    const char *key;
    const char *value; /* NULL: a flag */
};

/* A new file system with MOUNT_ATTR_* attributes, not attached anywhere. */
_must_use_ int mnt_new(const char *type, const struct mnt_option *options, size_t option_count, unsigned attributes,
                       int *ret_fd);

/*
 * A copy of the mount at dir/path ("" for dir itself), not attached anywhere, with these attributes set and private.
 * With no attributes it is as the original, which must be private then.
 */
_must_use_ int mnt_copy(int dir, const char *path, uint64_t attributes, int *ret_fd);

/* Show ids of the mount as a user namespace maps them. */
_must_use_ int mnt_idmap(int fd, int userns_fd);

/* Attach onto dir/path: a real folder or file beneath dir, reached through no symlink (CVE-2021-30465). */
_must_use_ int mnt_attach(int fd, int dir, const char *path);

/* Open a real folder beneath dir, reached through no symlink; O_PATH. The descriptor or -errno. */
_must_use_ int mnt_open_folder(int dir, const char *path);

/* Make the folders of a relative path beneath dir where they are missing, mode 0755. */
_must_use_ int mnt_make_folders(int dir, const char *path);
