/*
 * jobs: the keeper's jobs, some of which are at work while the others wait for their turn.
 *
 * AS ROOT. Each kind has a lane of its own with a bound on how many helpers run at once, so that however much there is
 * to clean up, a creation waits for other creations only. The first to come is the first to start.
 */
#pragma once

#include "keeper/job.h"

#include <stddef.h>

struct jobs_lane {
    struct job *first; /* of those that wait */
    struct job *last;
    struct job *running;
    size_t waiting_count;
    size_t running_count;
};

struct jobs {
    struct jobs_lane lanes[JOB_KINDS];
};

/* It waits; on its own until it is removed. */
void jobs_add(struct jobs *jobs, struct job *job);

/* The next that may start, moved to those that run; NULL when there is none. */
struct job *jobs_take(struct jobs *jobs);

/* It could not be started: first in the line again. */
void jobs_put_back(struct jobs *jobs, struct job *job);

/* It has to be in them, waiting or running. */
void jobs_remove(struct jobs *jobs, struct job *job);

/* All of a kind, one after the other: start with NULL; NULL at the end. */
struct job *jobs_next(const struct jobs *jobs, enum job_kind kind, const struct job *job);

size_t jobs_count(const struct jobs *jobs, enum job_kind kind);

/* Jobs wait although nothing runs whose end would let them start: somebody has to try again. */
bool jobs_are_stuck(const struct jobs *jobs);
