/*
 * job: work of the keeper's that a helper does: what a CREATE needs beforehand, or a disk that is being let go of.
 *
 * AS ROOT. The keeper owns its jobs; a job owns its helper and, for a CREATE, a copy of the message and its
 * descriptors until the sandbox can be made.
 */
#pragma once

#include "keeper/helper.h"
#include "keeper/prepared.h"
#include "keeper/source.h"
#include "wire/wire.h"

struct job {
    struct job *next;
    struct source source;
    struct helper helper;
    uint64_t start_ns;
    uint8_t *frame; /* NULL for a disk that is let go of */
    struct wire_message message;
    bool wants_image;
    int *fds;
    size_t fd_count;
};

/* Have what a CREATE needs made: its disk image, when it wants one, and its policy layer, when it lists programs.
 * `frame` is what the message was decoded from. On success the descriptors are the job's. */
_must_use_ int job_new_create(int state_fd, bool wants_image, const uint8_t *frame, int *fds, size_t fd_count,
                              struct job **ret_job, struct error *err);

/* Let go of a disk whose root this is. Closes the descriptor whatever happens. NULL when it is done already. */
struct job *job_new_discard(int *disk_fd);

/* What it made, once the helper has spoken. On failure `ret_step` says at what. */
_must_use_ int job_take(struct job *job, struct prepared *ret_prepared, enum step *ret_step, struct error *err);

void job_free(struct job *job);
