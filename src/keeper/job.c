#include "keeper/job.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "keeper/sandbox.h"
#include "wire/link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool wants_policy(const struct job *job)
{
    return job->message.create.only.count > 0;
}

static int make_parts(const struct job *job, int state_fd, struct prepared *prepared, enum step *step,
                      struct error *err)
{
    const struct wire_create *create = &job->message.create;
    int r = wants_policy(job) ? policy_prepare(state_fd, create->only, &prepared->policy, step, err) : 0;

    if (r < 0 || !job->wants_image)
        return r;
    *step = STEP_IMAGE;
    return disk_new(state_fd, create->disk_bytes, create->disk_inodes, &prepared->disk, err);
}

static void prepare(int socket, int state_fd, void *context)
{
    struct prepared prepared = PREPARED_EMPTY;
    struct error err = {0};
    enum step step = STEP_NONE;
    int r = make_parts(context, state_fd, &prepared, &step, &err);
    struct wire_message message = {.type = WIRE_PREPARED,
                                   .prepared = {.step = step,
                                                .error = (uint32_t)(r < 0 ? -r : 0),
                                                .detail = wire_str(r < 0 ? err.message : ""),
                                                .programs = policy_programs(&prepared.policy)}};
    int fds[3];
    size_t fd_count = 0;

    if (prepared.disk.mount_fd >= 0) {
        fds[fd_count++] = prepared.disk.mount_fd;
        fds[fd_count++] = prepared.disk.folder_fd;
    }
    if (prepared.policy.layer_fd >= 0)
        fds[fd_count++] = prepared.policy.layer_fd;
    /* Should nobody listen any more, all of it ends with this process. */
    ignore_result(link_send(socket, &message, fds, r < 0 ? 0 : fd_count));
}

static void discard_disk(int socket, int disk_fd, void *context)
{
    (void)socket;
    (void)context;
    disk_discard(disk_fd);
}

static void reclaim(int socket, int memory_fd, void *context)
{
    const struct job *job = context;

    (void)socket;
    cgroup_reclaim_in(job->cgroups, memory_fd, job->sandbox->cgroup);
}

static struct job *new_job(enum job_kind kind)
{
    struct job *job = calloc(1, sizeof *job);

    if (job != NULL) {
        job->kind = kind;
        job->disk_fd = -1;
        job->helper = HELPER_EMPTY;
        job->start_ns = clock_now_ns();
    }
    return job;
}

int job_new_create(bool wants_image, const uint8_t *frame, int *fds, size_t fd_count, struct job **ret_job,
                   struct error *err)
{
    int length = wire_frame_length(frame, WIRE_HEADER_SIZE);
    struct job *job = length > 0 ? new_job(JOB_CREATE) : NULL;

    if (job != NULL) {
        job->wants_image = wants_image;
        job->frame = malloc((size_t)length);
        job->fds = calloc(fd_count + 1, sizeof *fds);
    }
    if (job == NULL || job->frame == NULL || job->fds == NULL) {
        job_free(job);
        return error_set(err, ERROR_SYSTEM, ENOMEM, "starting a helper");
    }
    memcpy(job->frame, frame, (size_t)length);
    int r = wire_decode(job->frame, (size_t)length, &job->message);
    if (r < 0) {
        job_free(job);
        return error_set(err, ERROR_PROTOCOL, -r, "starting a helper");
    }
    memcpy(job->fds, fds, fd_count * sizeof *fds);
    job->fd_count = fd_count;
    *ret_job = job;
    return 0;
}

struct job *job_new_discard(int *disk_fd)
{
    struct job *job = new_job(JOB_DISCARD);

    if (job == NULL) {
        disk_discard(*disk_fd);
        close_fd(disk_fd);
        return NULL;
    }
    job->disk_fd = TAKE_FD(*disk_fd);
    return job;
}

struct job *job_new_reclaim(const struct cgroups *cgroups, struct sandbox *sandbox)
{
    struct job *job = new_job(JOB_RECLAIM);

    if (job != NULL) {
        job->cgroups = cgroups;
        job->sandbox = sandbox;
    }
    return job;
}

int job_start(struct job *job, int state_fd, struct error *err)
{
    int r = -EINVAL;

    switch (job->kind) {
    case JOB_CREATE:
        r = helper_start(&job->helper, prepare, state_fd, job, err);
        break;
    case JOB_DISCARD:
        r = helper_start(&job->helper, discard_disk, job->disk_fd, NULL, err);
        if (r == 0)
            close_fd(&job->disk_fd); /* the helper is to be the last to let go of it */
        break;
    case JOB_RECLAIM:
        r = helper_start(&job->helper, reclaim, cgroups_memory_fd(job->cgroups), job, err);
        break;
    case JOB_KINDS:
        break;
    }
    return r;
}

/* The helper said what went wrong. */
static int refused(const struct wire_prepared *prepared, struct error *err)
{
    int error = prepared->error != 0 ? (int)prepared->error : EBADMSG;

    (void)error_set(err, ERROR_SYSTEM, error, "hearing from a helper");
    if (prepared->error != 0)
        (void)snprintf(err->message, sizeof err->message, "%s", prepared->detail.text);
    return -error;
}

int job_take(struct job *job, struct prepared *ret_prepared, enum step *ret_step, struct error *err)
{
    static uint8_t frame[WIRE_FRAME_MAX];
    struct wire_message message;
    struct prepared prepared = {DISK_EMPTY, {.layer_fd = -1, .programs = buf_init(WIRE_FRAME_MAX)}};
    int fds[FD_PASS_MAX];
    size_t fd_count = 0;
    size_t taken = 0;

    *ret_step = job->wants_image ? STEP_IMAGE : STEP_POLICY;
    int r = link_receive(job->helper.socket, WIRE_BY_HELPER, WIRE_IN_RUNNING, frame, &message, fds, &fd_count);
    if (r <= 0)
        return error_set(err, ERROR_SYSTEM, r < 0 ? -r : EPIPE, "hearing from a helper");
    if (message.prepared.step > STEP_NONE && message.prepared.step < STEP_COUNT)
        *ret_step = (enum step)message.prepared.step;
    if (message.prepared.error != 0 || fd_count != (job->wants_image ? 2U : 0U) + (wants_policy(job) ? 1U : 0U)) {
        fd_close_many(fds, fd_count);
        return refused(&message.prepared, err);
    }
    if (job->wants_image) {
        prepared.disk.mount_fd = fds[taken++];
        prepared.disk.folder_fd = fds[taken++];
    }
    if (wants_policy(job))
        prepared.policy.layer_fd = fds[taken++];
    const struct wire_strv *programs = &message.prepared.programs;
    r = programs->length > 0 ? buf_append(&prepared.policy.programs, programs->data, programs->length) : 0;
    if (r < 0) {
        prepared_release(&prepared);
        return error_set(err, ERROR_SYSTEM, -r, "hearing from a helper");
    }
    *ret_prepared = prepared;
    return 0;
}

void job_free(struct job *job)
{
    if (job == NULL)
        return;
    helper_release(&job->helper);
    close_fd(&job->disk_fd);
    if (job->fds != NULL)
        fd_close_many(job->fds, job->fd_count);
    free(job->fds);
    free(job->frame);
    free(job);
}
