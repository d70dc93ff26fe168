/*
 * job: work of the keeper's that a helper does: what a CREATE needs beforehand, a disk that is being let go of, or
 * memory that a dead sandbox still holds.
 *
 * AS ROOT. The keeper owns its jobs; a job owns its helper, once it was started, and, for a CREATE, a copy of the
 * message and its descriptors until the sandbox can be made.
 */
#pragma once

#include "keeper/cgroup.h"
#include "keeper/helper.h"
#include "keeper/prepared.h"
#include "keeper/source.h"
#include "wire/wire.h"

struct sandbox;

enum job_kind { JOB_CREATE, JOB_DISCARD, JOB_RECLAIM, JOB_KINDS };

struct job {
    struct job *next; /* these three are for jobs.c */
    struct job *previous;
    bool is_running;
    enum job_kind kind;
    struct source source;
    struct helper helper;
    uint64_t start_ns;
    /* JOB_CREATE */
    uint8_t *frame;
    struct wire_message message;
    bool wants_image;
    int *fds;
    size_t fd_count;
    /* JOB_DISCARD */
    int disk_fd;
    /* JOB_RECLAIM */
    const struct cgroups *cgroups;
    struct sandbox *sandbox; /* stays as long as the job */
};

/* Have what a CREATE needs made: its disk image, when it wants one, and its policy layer, when it lists programs.
 * `frame` is what the message was decoded from. On success the descriptors are the job's. */
_must_use_ int job_new_create(bool wants_image, const uint8_t *frame, int *fds, size_t fd_count, struct job **ret_job,
                              struct error *err);

/* Let go of a disk whose root this is. Closes the descriptor whatever happens. NULL when it is done already. */
struct job *job_new_discard(int *disk_fd);

/* Give the memory back that a sandbox's cgroup still holds: minutes of a helper's time at worst. NULL: out of memory.
 */
struct job *job_new_reclaim(const struct cgroups *cgroups, struct sandbox *sandbox);

/* Start its helper. */
_must_use_ int job_start(struct job *job, int state_fd, struct error *err);

/* What it made, once the helper has spoken. On failure `ret_step` says at what. */
_must_use_ int job_take(struct job *job, struct prepared *ret_prepared, enum step *ret_step, struct error *err);

void job_free(struct job *job);
