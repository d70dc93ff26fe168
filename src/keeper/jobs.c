#include "keeper/jobs.h"

/* To make an image keeps a CPU and the disk busy; to clean up mostly waits for the kernel. */
static const size_t at_once[JOB_KINDS] = {[JOB_CREATE] = 8, [JOB_DISCARD] = 8, [JOB_RECLAIM] = 2};

static void link_running(struct jobs_lane *lane, struct job *job)
{
    job->previous = NULL;
    job->next = lane->running;
    if (lane->running != NULL)
        lane->running->previous = job;
    lane->running = job;
    lane->running_count++;
    job->is_running = true;
}

void jobs_add(struct jobs *jobs, struct job *job)
{
    struct jobs_lane *lane = &jobs->lanes[job->kind];

    job->is_running = false;
    job->next = NULL;
    job->previous = lane->last;
    if (lane->last != NULL)
        lane->last->next = job;
    else
        lane->first = job;
    lane->last = job;
    lane->waiting_count++;
}

void jobs_remove(struct jobs *jobs, struct job *job)
{
    struct jobs_lane *lane = &jobs->lanes[job->kind];
    struct job **head = job->is_running ? &lane->running : &lane->first;

    if (job->previous != NULL)
        job->previous->next = job->next;
    else
        *head = job->next;
    if (job->next != NULL)
        job->next->previous = job->previous;
    else if (!job->is_running)
        lane->last = job->previous;
    lane->running_count -= job->is_running ? 1 : 0;
    lane->waiting_count -= job->is_running ? 0 : 1;
    job->next = job->previous = NULL;
}

struct job *jobs_take(struct jobs *jobs)
{
    for (int kind = 0; kind < JOB_KINDS; kind++) {
        struct jobs_lane *lane = &jobs->lanes[kind];
        struct job *job = lane->first;
        if (job == NULL || lane->running_count >= at_once[kind])
            continue;
        jobs_remove(jobs, job);
        link_running(lane, job);
        return job;
    }
    return NULL;
}

void jobs_put_back(struct jobs *jobs, struct job *job)
{
    struct jobs_lane *lane = &jobs->lanes[job->kind];

    jobs_remove(jobs, job);
    job->is_running = false;
    job->next = lane->first;
    if (lane->first != NULL)
        lane->first->previous = job;
    else
        lane->last = job;
    lane->first = job;
    lane->waiting_count++;
}

struct job *jobs_next(const struct jobs *jobs, enum job_kind kind, const struct job *job)
{
    const struct jobs_lane *lane = &jobs->lanes[kind];

    if (job == NULL)
        return lane->running != NULL ? lane->running : lane->first;
    if (job->next != NULL || !job->is_running)
        return job->next;
    return lane->first;
}

size_t jobs_count(const struct jobs *jobs, enum job_kind kind)
{
    return jobs->lanes[kind].running_count + jobs->lanes[kind].waiting_count;
}

bool jobs_are_stuck(const struct jobs *jobs)
{
    for (int kind = 0; kind < JOB_KINDS; kind++) {
        if (jobs->lanes[kind].first != NULL && jobs->lanes[kind].running_count == 0)
            return true;
    }
    return false;
}
