/*
 * job: work of the keeper's that a helper does: a CREATE whose disk is being made, or a disk that is being let go of.
 *
 * AS ROOT. The keeper owns its jobs; a job owns its helper and, for a CREATE, a copy of the message and its
 * descriptors until the sandbox can be made.
 */
#pragma once

#include "keeper/disk.h"
#include "keeper/helper.h"
#include "keeper/source.h"
#include "wire/wire.h"

struct job {
    struct job *next;
    struct source source;
    struct helper helper;
    uint64_t start_ns;
    uint8_t *frame; /* NULL for a disk that is let go of */
    struct wire_message message;
    int *fds;
    size_t fd_count;
};

/* Have the disk of a CREATE made. `frame` is what the message was decoded from. On success the descriptors are the
 * job's. */
_must_use_ int job_new_create(int state_fd, const uint8_t *frame, int *fds, size_t fd_count, struct job **ret_job,
                              struct error *err);

/* Let go of a disk whose root this is. Closes the descriptor whatever happens. NULL when it is done already. */
struct job *job_new_discard(int *disk_fd);

/* The disk, once the helper has spoken. */
_must_use_ int job_take_disk(struct job *job, struct disk *ret_disk, struct error *err);

void job_free(struct job *job);
