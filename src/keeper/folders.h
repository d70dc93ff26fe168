/*
 * folders: the host folders that a daemon's configuration names: templates and shares.
 *
 * AS ROOT. The gateway says names and paths below them, never folders of its own: what it could hand over it could have
 * made up. A path is resolved beneath its share without a symlink; whose the files are says the folder itself.
 */
#pragma once

#include "wire/wire.h"

enum { FOLDERS_MAX = 128, FOLDER_NAME_SIZE = 64 };

struct folder {
    char name[FOLDER_NAME_SIZE];
    int fd; /* O_PATH */
    bool is_share;
    bool is_writable;
};

struct folders {
    size_t count;
    struct folder list[FOLDERS_MAX];
};

/* Open all that CONFIG names. On failure nothing stays open. */
_must_use_ int folders_open(struct folders *folders, const struct wire_config *config, struct error *err);
void folders_close(struct folders *folders);

/*
 * The descriptors that a CREATE with names stands for, in the order of one with descriptors; they are the caller's.
 * Changes the owner in `create`, and takes the right to write from what may only be read: `dir_flags` (room for
 * WIRE_DIRS_MAX, little-endian) becomes its vector.
 */
_must_use_ int folders_resolve(const struct folders *folders, struct wire_create *create, uint64_t *dir_flags, int *fds,
                               size_t *ret_fd_count, struct error *err);
