/*
 * sandbox: one sandbox as the keeper sees it: a process, a cgroup, a range of ids. At most three descriptors,
 * and a fourth when it has both a disk image and a list of programs.
 *
 * AS ROOT.
 */
#pragma once

#include "keeper/cgroup.h"
#include "keeper/ids.h"
#include "keeper/prepared.h"
#include "keeper/source.h"
#include "wire/steps.h"
#include "wire/wire.h"

#include <sys/types.h>

enum sandbox_state { SANDBOX_LIVE, SANDBOX_ENDING, SANDBOX_DEAD };

struct sandbox {
    struct sandbox *next;
    struct sandbox *next_dying;
    struct sandbox *next_watched; /* these five are for memory.c */
    struct sandbox *next_suspect;
    bool is_suspect;
    unsigned passes;
    int watch;            /* -1: none */
    struct source source; /* the pidfd */
    uint64_t id;
    enum sandbox_state state;
    uint32_t uid_first;
    int pidfd;
    int disk_fd;   /* the root of its disk image, -1 without */
    int layer_fd;  /* its policy layer, locked; -1 without */
    int guest_fd;  /* a daemon's copy of the guest link, for the next gateway; else -1 */
    bool is_told;  /* the client knows of it */
    bool is_dying; /* among those whose removal is tried again */
    int wait_status;
    uint32_t oom_kills;
    uint32_t last_oom_kills; /* when it had ended by itself */
    uint32_t last_processes_refused;
    char cgroup[CGROUP_NAME_SIZE];
};

/* What making one needs of its keeper. */
struct sandbox_maker {
    struct ids *ids;
    struct cgroups *cgroups;
    int state_fd;
    int host_layer_fd; /* -1 until a sandbox wants it */
    int init_fd;
    int zygote_fd;
    int airlock_fd;     /* where its sockets are handed over; -1: no sandbox has a network */
    bool proc_by_child; /* this kernel makes no /proc for others */
    const char *instance_id;
};

/* Where a creation is, or where it failed, and how long each step took. */
struct sandbox_progress {
    enum step step;
    uint64_t step_start_ns;
    uint64_t steps_ns[STEP_COUNT];
};

/*
 * Make a sandbox in one go; without a prepared disk it has a tmpfs, without a policy it executes what it likes. On
 * success its init is on its way and `ret_guest_fd` is the host's end of the guest link; on failure nothing is left and
 * progress->step is the step that failed.
 */
_must_use_ int sandbox_new(struct sandbox_maker *maker, const struct wire_create *create, const int *fds,
                           struct prepared *prepared, struct sandbox_progress *progress, struct sandbox **ret_sandbox,
                           int *ret_guest_fd, struct error *err);

/* Kill everything in it. Goes on until the pidfd is readable. */
void sandbox_end(struct sandbox_maker *maker, struct sandbox *sandbox);

/* Once the pidfd is readable: reap it. 0, also when it was before, or -EBUSY to be tried again. */
_must_use_ int sandbox_reap(struct sandbox *sandbox);

/* Then: remove what is left. 0, or -EBUSY to be tried again. */
_must_use_ int sandbox_remove(struct sandbox_maker *maker, struct sandbox *sandbox);

/* Only after sandbox_remove() answered 0. */
void sandbox_free(struct sandbox *sandbox);
