/*
 * spawn: what the child that becomes a sandbox is given. Filled from a SPAWN message by the zygote, read by the child.
 */
#pragma once

#include "base/fd.h"
#include "wire/wire.h"

#include <stdint.h>

enum { SPAWN_TASKS_MAX = 3, SPAWN_LAYERS_MAX = 8 };

struct spawn {
    uint64_t sandbox;
    uint32_t flags; /* WIRE_SPAWN_* */
    uint32_t uid_first;
    uint32_t user; /* inside: whom the writable folders belong to */
    uint64_t disk_bytes;
    uint64_t disk_inodes;
    struct wire_str hostname;
    struct wire_strv dirs;     /* guest paths, one per entry of dir_fds */
    struct wire_strv programs; /* below /usr: what may be executed, with WIRE_SPAWN_ONLY */
    int guest_fd;
    int init_fd;
    int cgroup_fd;
    int usr_fd;     /* -1 without WIRE_SPAWN_USR */
    int disk_fd;    /* -1 without WIRE_SPAWN_IMAGE: then the disk is a tmpfs */
    int policy_fd;  /* -1 without WIRE_SPAWN_ONLY: the layer over /usr */
    int airlock_fd; /* -1 without WIRE_SPAWN_NETWORK: then there is only the loopback interface */
    int task_fds[SPAWN_TASKS_MAX];
    size_t task_count;
    int layer_fds[SPAWN_LAYERS_MAX];
    size_t layer_count;
    int dir_fds[WIRE_DIRS_MAX];
    size_t dir_count;
};

static inline bool spawn_is_listed(const struct spawn *spawn)
{
    return (spawn->flags & WIRE_SPAWN_ONLY) != 0;
}

/* In which layout a SPAWN message's descriptors are: 0 or -EBADMSG when they are not as many as it says. */
_must_use_ int spawn_from_message(const struct wire_spawn *message, const int *fds, size_t fd_count,
                                  struct spawn *ret_spawn);

/* The same layout, written: the number of descriptors. `fds` has room for FD_PASS_MAX. */
size_t spawn_to_message(const struct spawn *spawn, struct wire_spawn *message, int *fds);
