#include "keeper/job.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "wire/link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct disk_order {
    uint64_t bytes;
    uint64_t inodes;
};

static void make_disk(int socket, int state_fd, void *context)
{
    const struct disk_order *order = context;
    struct disk disk = DISK_EMPTY;
    struct error err = {0};
    int r = disk_new(state_fd, order->bytes, order->inodes, &disk, &err);
    struct wire_message message = {
        .type = WIRE_DISK, .disk = {.error = (uint32_t)(r < 0 ? -r : 0), .detail = wire_str(r < 0 ? err.message : "")}};
    int fds[] = {disk.mount_fd, disk.folder_fd};

    /* Should nobody listen any more, all of it ends with this process. */
    ignore_result(link_send(socket, &message, fds, r < 0 ? 0 : 2));
}

static void discard_disk(int socket, int disk_fd, void *context)
{
    (void)socket;
    (void)context;
    disk_discard(disk_fd);
}

static struct job *new_job(void)
{
    struct job *job = calloc(1, sizeof *job);

    if (job != NULL) {
        job->helper = HELPER_EMPTY;
        job->start_ns = clock_now_ns();
    }
    return job;
}

int job_new_create(int state_fd, const uint8_t *frame, int *fds, size_t fd_count, struct job **ret_job,
                   struct error *err)
{
    int length = wire_frame_length(frame, WIRE_HEADER_SIZE);
    struct job *job = length > 0 ? new_job() : NULL;

    if (job != NULL) {
        job->frame = malloc((size_t)length);
        job->fds = calloc(fd_count + 1, sizeof *fds);
    }
    if (job == NULL || job->frame == NULL || job->fds == NULL) {
        job_free(job);
        return error_set(err, ERROR_SYSTEM, ENOMEM, "making the disk");
    }
    memcpy(job->frame, frame, (size_t)length);
    int r = wire_decode(job->frame, (size_t)length, &job->message);
    struct disk_order order = {job->message.create.disk_bytes, job->message.create.disk_inodes};
    r = r < 0 ? error_set(err, ERROR_PROTOCOL, -r, "making the disk")
              : helper_start(&job->helper, make_disk, state_fd, &order, err);
    if (r < 0) {
        job_free(job);
        return r;
    }
    memcpy(job->fds, fds, fd_count * sizeof *fds);
    job->fd_count = fd_count;
    *ret_job = job;
    return 0;
}

struct job *job_new_discard(int *disk_fd)
{
    struct job *job = new_job();
    struct error err;

    if (job == NULL || helper_start(&job->helper, discard_disk, *disk_fd, NULL, &err) < 0) {
        disk_discard(*disk_fd);
        job_free(job);
        job = NULL;
    }
    close_fd(disk_fd);
    return job;
}

int job_take_disk(struct job *job, struct disk *ret_disk, struct error *err)
{
    static uint8_t frame[WIRE_FRAME_MAX];
    struct wire_message message;
    int fds[FD_PASS_MAX];
    size_t fd_count = 0;

    int r = link_receive(job->helper.socket, WIRE_BY_HELPER, WIRE_IN_RUNNING, frame, &message, fds, &fd_count);
    if (r <= 0)
        return error_set(err, ERROR_SYSTEM, r < 0 ? -r : EPIPE, "hearing from the helper that makes the disk");
    if (message.disk.error != 0 || fd_count != 2) {
        fd_close_many(fds, fd_count);
        int error = message.disk.error != 0 ? (int)message.disk.error : EBADMSG;
        (void)error_set(err, ERROR_SYSTEM, error, "making the disk");
        (void)snprintf(err->message, sizeof err->message, "%s", message.disk.detail.text);
        return -error;
    }
    *ret_disk = (struct disk){.mount_fd = fds[0], .folder_fd = fds[1]};
    return 0;
}

void job_free(struct job *job)
{
    if (job == NULL)
        return;
    helper_release(&job->helper);
    if (job->fds != NULL)
        fd_close_many(job->fds, job->fd_count);
    free(job->fds);
    free(job->frame);
    free(job);
}
