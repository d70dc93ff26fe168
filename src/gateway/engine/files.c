/*
 * Theory of operation. An operation has one of a few slots, and its channel the slot's number: so a gateway that comes
 * after a crash can release what this one left. A slot is free again after EXIT and RELEASE. One that is cancelled is
 * killed inside, and what it still says is thrown away until then.
 */
#include "gateway/engine/internal.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_LENGTH_MAX = 4095, ACK_DUE = WIRE_WINDOW / 4 };

struct file_job {
    struct file_job *next;
    struct sandbox *sandbox;
    uint32_t slot;
    bool is_paused;
    bool is_cancelled;
    bool is_busy;  /* a callback is running */
    bool is_ended; /* and it is to be freed after that */
    bool input_ended;
    bool wants_room;
    struct guest_channel channel;
    struct answer answer;
    struct file_callbacks callbacks;
    void *data;
};

/* It has no channel any more. */
static void leave(struct file_job *job)
{
    struct sandbox *sandbox = job->sandbox;
    struct file_job **at = &sandbox->files;

    while (*at != NULL && *at != job)
        at = &(*at)->next;
    if (*at != NULL)
        *at = job->next;
    sandbox->file_slots &= ~(UINT32_C(1) << job->slot);
    guest_close(&sandbox->link.guest, &job->channel);
    sandbox_used(sandbox);
}

static void end(struct file_job *job, const struct error *err)
{
    bool is_wanted = !job->is_cancelled;

    job->is_cancelled = true;
    job->is_ended = true;
    if (is_wanted)
        job->callbacks.ended(job->data, job, err);
}

static struct wire_str text(const char *given, const char *otherwise)
{
    return wire_str(given != NULL ? given : otherwise);
}

static bool is_too_long(const char *given)
{
    return given != NULL && strlen(given) > PATH_LENGTH_MAX;
}

static int check(const struct sandbox *sandbox, const struct file_question *question, struct error *err)
{
    if ((sandbox->state != SANDBOX_READY && sandbox->state != SANDBOX_STOPPED) || !sandbox->link.is_open)
        return sandbox_not_running(sandbox, err);
    if (question->operation >= WIRE_FILE_OPERATIONS || question->uid >= WIRE_INNER_IDS)
        return error_set(err, ERROR_INVALID, 0, "there is no such operation or user");
    if (is_too_long(question->path) || is_too_long(question->new_path) || is_too_long(question->folder))
        return error_set(err, ERROR_INVALID, ENAMETOOLONG, "the path is too long");
    if (sandbox->file_slots == (UINT32_C(1) << FILES_AT_ONCE) - 1 || sandbox->link.outbox.first != NULL)
        return error_set(err, ERROR_LIMIT, EAGAIN, "too many operations on files are under way in this sandbox");
    return 0;
}

int file_start(struct sandbox *sandbox, const struct file_question *question, const struct file_callbacks *callbacks,
               void *data, struct file_job **ret_job, struct error *err)
{
    int r = check(sandbox, question, err);

    if (r < 0)
        return r;
    struct file_job *job = calloc(1, sizeof *job);
    if (job == NULL)
        return error_set(err, ERROR_SYSTEM, ENOMEM, "working on files");
    job->sandbox = sandbox;
    job->slot = (uint32_t)__builtin_ctz(~sandbox->file_slots);
    job->callbacks = *callbacks;
    job->data = data;
    bool takes_input = question->operation == WIRE_FILE_WRITE || question->operation == WIRE_FILE_APPEND;
    job->input_ended = !takes_input;
    job->channel = (struct guest_channel){.id = guest_channel_id(sandbox->engine->options.start, true, job->slot),
                                          .owner = job,
                                          .is_file = true,
                                          .stdin_closed = !takes_input};
    struct wire_message message = {.type = WIRE_FILE,
                                   .file = {.channel = job->channel.id,
                                            .operation = (uint8_t)question->operation,
                                            .flags = question->flags,
                                            .uid = question->uid,
                                            .gid = question->uid,
                                            .mode = question->mode,
                                            .offset = question->offset,
                                            .length = question->length,
                                            .folder = text(question->folder, "/workspace"),
                                            .path = text(question->path, ""),
                                            .new_path = text(question->new_path, "")}};
    answer_init(&job->answer, &message.file);
    r = guest_link_say(&sandbox->link, &message);
    if (r < 0) {
        free(job);
        return error_set(err, ERROR_SYSTEM, -r, "working on files");
    }
    job->next = sandbox->files;
    sandbox->files = job;
    sandbox->file_slots |= UINT32_C(1) << job->slot;
    guest_open(&sandbox->link.guest, &job->channel);
    sandbox_used(sandbox);
    *ret_job = job;
    return 0;
}

size_t file_write(struct file_job *job, const void *data, size_t length, bool is_end)
{
    struct guest_channel *channel = &job->channel;
    size_t taken = 0;

    if (job->input_ended || channel->stdin_closed || job->sandbox == NULL)
        return length; /* its end will say why nobody wants it */
    while (job->sandbox->link.outbox.first == NULL && (taken < length || (is_end && !job->input_ended))) {
        size_t room = guest_stdin_room(channel);
        size_t part = length - taken < room ? length - taken : room;
        part = part < WIRE_DATA_MAX ? part : WIRE_DATA_MAX;
        if (part == 0 && taken < length)
            break;
        job->input_ended = is_end && taken + part == length;
        struct wire_message message = {
            .type = WIRE_STDIN,
            .stdin_data = {.channel = channel->id,
                           .offset = channel->sent,
                           .end = job->input_ended,
                           .data = {.data = (const uint8_t *)data + taken, .length = (uint32_t)part}}};
        if (sandbox_say(job->sandbox, &message) < 0)
            break;
        channel->sent += part;
        taken += part;
    }
    job->wants_room = taken < length || (is_end && !job->input_ended);
    return taken;
}

static void tell_room(struct file_job *job)
{
    if (!job->wants_room || job->is_cancelled || job->callbacks.room == NULL)
        return;
    job->wants_room = false;
    job->callbacks.room(job->data, job);
}

void file_link_drained(struct file_job *job)
{
    if (guest_stdin_room(&job->channel) == 0)
        return;
    job->is_busy = true;
    tell_room(job);
    job->is_busy = false;
    if (job->is_ended)
        free(job);
}

static void acknowledge(struct file_job *job)
{
    struct guest_channel *channel = &job->channel;

    if (job->is_paused || job->sandbox == NULL || channel->received[0] - channel->acked[0] < ACK_DUE)
        return;
    channel->acked[0] = channel->received[0];
    struct wire_message message = {.type = WIRE_ACK,
                                   .ack = {.channel = channel->id, .stdout_offset = channel->acked[0]}};
    ignore_result(sandbox_say(job->sandbox, &message));
}

void file_pause(struct file_job *job, bool is_paused)
{
    job->is_paused = is_paused;
    acknowledge(job);
}

void file_cancel(struct file_job *job)
{
    struct wire_message message = {.type = WIRE_SIGNAL,
                                   .signal = {.channel = job->channel.id, .signal = SIGKILL, .scope = WIRE_SCOPE_TREE}};

    if (job->is_cancelled)
        return;
    job->is_cancelled = true;
    job->is_paused = false;
    if (job->sandbox == NULL)
        return;
    /* An init that reads nothing may end here, and this job with it. */
    bool was_busy = job->is_busy;
    job->is_busy = true;
    ignore_result(sandbox_say(job->sandbox, &message));
    acknowledge(job);
    job->is_busy = was_busy;
    if (!was_busy && job->is_ended)
        free(job);
}

/* What a part of the answer means to the caller. */
static int take(struct file_job *job, struct wire_bytes data)
{
    struct answer_part part;
    int r = 0;

    while (!job->is_cancelled && (r = answer_next(&job->answer, &data, &part)) > 0) {
        if (part.record.type == WIRE_NOTHING && job->callbacks.content != NULL)
            job->callbacks.content(job->data, job, part.content.data, part.content.length);
        else if (part.record.type != WIRE_NOTHING && job->callbacks.record != NULL)
            job->callbacks.record(job->data, job, &part.record);
    }
    return job->is_cancelled ? 0 : r;
}

static enum error_code code_of(uint32_t error)
{
    switch (error) {
    case ENOENT:
        return ERROR_NOT_FOUND;
    case EACCES:
    case EPERM:
    case EROFS:
        return ERROR_DENIED;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case EMFILE:
        return ERROR_LIMIT;
    case EEXIST:
    case EISDIR:
    case ENOTDIR:
    case ENOTEMPTY:
    case ENXIO:
    case ELOOP:
    case EINVAL:
    case ENAMETOOLONG:
    case ENODATA:
        return ERROR_INVALID;
    default:
        return ERROR_SYSTEM;
    }
}

static void heard_exit(struct file_job *job, const struct wire_exit *exit)
{
    struct sandbox *sandbox = job->sandbox;
    struct wire_message release = {.type = WIRE_RELEASE, .release = {.channel = job->channel.id}};
    struct error err = {0};
    int r = take(job, exit->stdout_tail);

    if (job->sandbox == NULL)
        return; /* a callback has ended the sandbox, and with it this */
    if (!job->is_cancelled && (r < 0 || answer_end(&job->answer, exit) < 0)) {
        sandbox_misbehaved(sandbox);
        return;
    }
    ignore_result(sandbox_say(sandbox, &release));
    if (job->sandbox == NULL)
        return;
    leave(job);
    job->sandbox = NULL;
    sandbox->was_file_killed =
        sandbox->was_file_killed || (exit->kind == WIRE_EXIT_SIGNAL && exit->value == SIGKILL && !job->is_cancelled);
    if (exit->kind == WIRE_EXIT_SIGNAL)
        (void)error_set(&err, ERROR_SYSTEM, 0, "the operation was ended by signal %u", exit->value);
    else if (exit->value != 0)
        (void)error_set(&err, code_of(exit->value), (int)exit->value, "in the sandbox");
    end(job, err.code != ERROR_NONE ? &err : NULL);
}

void file_heard(struct file_job *job, const struct guest_event *event)
{
    job->is_busy = true;
    if (event->kind == GUEST_TAKEN) {
        tell_room(job);
    } else if (event->kind == GUEST_EXIT) {
        heard_exit(job, event->exit);
    } else if (take(job, event->data) < 0) {
        if (job->sandbox != NULL)
            sandbox_misbehaved(job->sandbox);
    } else {
        acknowledge(job);
    }
    job->is_busy = false;
    if (job->is_ended)
        free(job);
}

/* Nothing new starts meanwhile: the sandbox does not run any more. */
void file_lost_all(struct sandbox *sandbox)
{
    struct error err = {0};

    (void)error_set(&err, ERROR_INVALID, ESHUTDOWN, "the sandbox has ended");
    for (struct file_job *job = sandbox->files, *next; job != NULL; job = next) {
        next = job->next;
        leave(job);
        job->sandbox = NULL;
        end(job, &err);
        if (!job->is_busy)
            free(job);
    }
}

void file_abandon_all(struct sandbox *sandbox)
{
    for (struct file_job *job = sandbox->files, *next; job != NULL; job = next) {
        next = job->next;
        leave(job);
        job->is_cancelled = job->is_ended = true;
        job->sandbox = NULL;
        if (!job->is_busy)
            free(job);
    }
}
