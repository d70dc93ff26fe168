/*
 * Files as raw bytes, streamed both ways. What a client does not take makes the worker inside wait; what the worker
 * does not take makes the client wait. An upload gets its name when all of it is there, so of one whose client vanished
 * nothing is left.
 */
#include "gateway/surface/call.h"
#include "gateway/surface/plan.h"
#include "gateway/surface/routes.h"

#include <stdio.h>
#include <string.h>

enum { FILE_MODE = 0644, HELD_MAX = 1 << 20, NAME_SIZE = 512, LENGTH_SIZE = 24 };

struct transfer {
    struct call *call;
    struct file_job *job;
    const char *path;
    uint64_t size;
    uint64_t sent;
    uint64_t written;
    struct buf held; /* of an upload: what the worker did not take yet */
    size_t held_start;
    bool is_paused;
    bool has_failed;
    bool has_end; /* of the upload's body */
};

static struct transfer *begin(struct call *call, struct sandbox **ret_sandbox)
{
    struct sandbox *sandbox = call_sandbox(call);
    struct transfer *transfer = sandbox == NULL ? NULL : call_alloc(call, sizeof *transfer);

    if (transfer == NULL)
        return NULL;
    transfer->call = call;
    transfer->held = buf_init(HELD_MAX);
    transfer->path = request_parameter(call->request, "path");
    if (transfer->path == NULL) {
        call_refuse_memory(call);
        return NULL;
    }
    call->state = transfer;
    writer_text(call_detail(call), "file", transfer->path);
    *ret_sandbox = sandbox;
    return transfer;
}

static int start(struct transfer *transfer, struct sandbox *sandbox, struct file_question *question,
                 const struct file_callbacks *callbacks, const struct request_events *events)
{
    struct error err = {0};

    question->uid = plan_user(sandbox);
    question->path = transfer->path;
    int r = file_start(sandbox, question, callbacks, transfer, &transfer->job, &err);
    if (r < 0)
        call_fail_file(transfer->call, &err);
    else
        transfer->call->request->events = events;
    return r;
}

/* The next piece of the body may come from within the call. */
static void take_more(struct transfer *transfer)
{
    bool was_paused = transfer->is_paused;

    transfer->is_paused = false;
    if (was_paused)
        request_resume(transfer->call->request);
}

/* Nothing more comes of it: what is left is to end the request. */
static void stop(struct transfer *transfer)
{
    if (transfer->job != NULL)
        file_cancel(transfer->job);
    transfer->job = NULL;
    transfer->call->request->events = NULL;
    take_more(transfer);
    buf_release(&transfer->held);
}

static void client_gone(struct request *request)
{
    struct call *call = call_of(request);
    struct transfer *transfer = call->state;

    stop(transfer);
    if (request_has_started(request)) {
        call_abort(call);
        return;
    }
    call->verdict = STORE_FAILED;
    writer_text(call_detail(call), "error", "the client went away");
    call_answer_empty(call, 499);
}

static bool is_plain(char c)
{
    return c >= ' ' && c <= '~' && c != '"' && c != '\\';
}

/* A name that can stand in a header, whatever the file is called (RFC 6266). */
static void set_name(struct transfer *transfer)
{
    const char *slash = strrchr(transfer->path, '/');
    char value[NAME_SIZE];
    size_t length = (size_t)snprintf(value, sizeof value, "attachment; filename=\"");

    for (const char *at = slash != NULL ? slash + 1 : transfer->path; *at != '\0' && length < sizeof value - 2; at++) {
        char c = *at;
        if (!is_plain(c))
            c = '_';
        value[length++] = c;
    }
    value[length++] = '"';
    value[length] = '\0';
    ignore_result(request_set_header(transfer->call->request, "Content-Disposition", value)); /* a convenience */
}

/* Files of /proc have no size until they are read: those go out in chunks. */
static void start_answer(struct transfer *transfer)
{
    set_name(transfer);
    request_start(transfer->call->request, 200, "application/octet-stream",
                  transfer->size > 0 ? (int64_t)transfer->size : REQUEST_LENGTH_UNKNOWN);
}

static void send_held(struct transfer *transfer)
{
    struct buf held = transfer->held;

    transfer->held = buf_init(HELD_MAX);
    transfer->sent += held.length;
    if (held.length > 0)
        ignore_result(request_write(transfer->call->request, held.data, held.length)); /* `gone` tells */
    buf_release(&held);
}

static void start_download(struct call *call)
{
    struct transfer *transfer = call->state;

    if (transfer->job == NULL) {
        call_abort(call);
        return;
    }
    start_answer(transfer);
    if (call->request->method == METHOD_HEAD) {
        stop(transfer);
        call_finish(call);
        return;
    }
    send_held(transfer);
    file_pause(transfer->job, false);
}

/* Everything has come, or nothing more will. */
static void finish_download(struct call *call)
{
    struct transfer *transfer = call->state;

    if (!request_has_started(call->request))
        start_answer(transfer);
    send_held(transfer);
    bool is_whole = !transfer->has_failed && (transfer->size == 0 || transfer->sent == transfer->size);
    stop(transfer);
    if (is_whole || call->request->method == METHOD_HEAD)
        call_finish(call);
    else
        call_abort(call);
}

static bool is_being_recorded(const struct call *call)
{
    return call->then != NULL && !call->is_recorded;
}

static void download_gone(struct request *request)
{
    struct call *call = call_of(request);

    if (!is_being_recorded(call)) {
        client_gone(request);
        return;
    }
    stop(call->state);
    call->then = start_download;
}

/* The entry comes first: then the size is known. While it is being recorded the content waits. */
static void download_entry(void *data, struct file_job *job, const struct wire_message *record)
{
    struct transfer *transfer = data;

    if (record->type != WIRE_ENTRY)
        return;
    transfer->size = record->entry.size;
    writer_number(call_detail(transfer->call), "bytes", (int64_t)transfer->size);
    file_pause(job, true);
    call_record(transfer->call, start_download);
}

static void download_content(void *data, struct file_job *job, const uint8_t *content, size_t length)
{
    struct transfer *transfer = data;
    struct request *request = transfer->call->request;
    uint64_t left = transfer->size - transfer->sent - transfer->held.length;

    if (transfer->size > 0 && length > left)
        length = (size_t)left;
    if (!request_has_started(request)) {
        /* At most a window's worth comes while it is paused, and the buffer holds more. */
        if (buf_append(&transfer->held, content, length) < 0)
            transfer->has_failed = true;
        return;
    }
    transfer->sent += length;
    if (request_write(request, content, length) == 0)
        file_pause(job, true);
}

static void download_drain(struct request *request)
{
    struct transfer *transfer = call_of(request)->state;

    if (transfer->job != NULL)
        file_pause(transfer->job, false);
}

static void download_ended(void *data, struct file_job *job __attribute__((unused)), const struct error *err)
{
    struct transfer *transfer = data;
    struct call *call = transfer->call;

    transfer->job = NULL;
    transfer->has_failed = transfer->has_failed || err != NULL;
    if (is_being_recorded(call)) {
        call->then = finish_download;
    } else if (request_has_started(call->request)) {
        finish_download(call);
    } else {
        stop(transfer);
        call_fail_file(call, err);
    }
}

void files_get(struct request *request)
{
    static const struct file_callbacks callbacks = {
        .record = download_entry, .content = download_content, .ended = download_ended};
    static const struct request_events events = {.drain = download_drain, .gone = download_gone};
    struct file_question question = {.operation = WIRE_FILE_READ, .length = WIRE_FILE_ALL};
    struct sandbox *sandbox = NULL;
    struct transfer *transfer = begin(call_of(request), &sandbox);

    if (transfer != NULL)
        ignore_result(start(transfer, sandbox, &question, &callbacks, &events)); /* it was answered */
}

static void push(struct transfer *transfer)
{
    size_t left = transfer->held.length - transfer->held_start;

    if (transfer->job == NULL || (left == 0 && !transfer->has_end))
        return;
    transfer->held_start +=
        file_write(transfer->job, transfer->held.data + transfer->held_start, left, transfer->has_end);
    if (transfer->held_start == transfer->held.length) {
        transfer->held.length = 0;
        transfer->held_start = 0;
        take_more(transfer);
    }
}

static void upload_body(struct request *request, const void *data, size_t length)
{
    struct transfer *transfer = call_of(request)->state;
    size_t taken = 0;

    if (length == 0)
        transfer->has_end = true;
    if (transfer->job == NULL)
        return;
    if (transfer->held.length == 0 && length > 0)
        taken = file_write(transfer->job, data, length, false);
    if (buf_append(&transfer->held, (const uint8_t *)data + taken, length - taken) < 0) {
        stop(transfer);
        call_refuse_memory(transfer->call);
        return;
    }
    if (transfer->held.length > 0 && !transfer->has_end) {
        transfer->is_paused = true;
        request_pause(request);
    }
    if (transfer->has_end)
        push(transfer);
}

static void upload_room(void *data, struct file_job *job __attribute__((unused)))
{
    push(data);
}

static void upload_told(void *data, struct file_job *job __attribute__((unused)), const struct wire_message *record)
{
    struct transfer *transfer = data;

    if (record->type == WIRE_WRITTEN)
        transfer->written = record->written.bytes;
}

static void upload_ended(void *data, struct file_job *job __attribute__((unused)), const struct error *err)
{
    struct transfer *transfer = data;
    struct call *call = transfer->call;
    struct writer writer = writer_init(CALL_ANSWER_MAX);

    transfer->job = NULL;
    stop(transfer);
    if (err != NULL) {
        call_fail_file(call, err);
        return;
    }
    writer_number(call_detail(call), "bytes", (int64_t)transfer->written);
    writer_open(&writer, NULL, '{');
    writer_text(&writer, "path", transfer->path);
    writer_number(&writer, "bytes_written", (int64_t)transfer->written);
    writer_close(&writer, '}');
    call_answer(call, 200, &writer);
}

void files_put(struct request *request)
{
    static const struct file_callbacks callbacks = {.record = upload_told, .room = upload_room, .ended = upload_ended};
    static const struct request_events events = {.body = upload_body, .gone = client_gone};
    struct file_question question = {.operation = WIRE_FILE_WRITE,
                                     .flags = WIRE_FILE_PARENTS | WIRE_FILE_ATOMIC,
                                     .mode = FILE_MODE,
                                     .length = WIRE_FILE_ALL};
    struct sandbox *sandbox = NULL;
    struct transfer *transfer = begin(call_of(request), &sandbox);

    if (transfer != NULL)
        ignore_result(start(transfer, sandbox, &question, &callbacks, &events)); /* it was answered */
}

static void removed(void *data, struct file_job *job __attribute__((unused)), const struct error *err)
{
    struct transfer *transfer = data;

    transfer->job = NULL;
    if (err != NULL)
        call_fail_file(transfer->call, err);
    else
        call_answer_empty(transfer->call, 204);
}

void files_delete(struct request *request)
{
    static const char *const parameters[] = {"recursive", NULL};
    static const struct file_callbacks callbacks = {.ended = removed};
    struct file_question question = {.operation = WIRE_FILE_REMOVE};
    struct sandbox *sandbox = NULL;
    bool is_recursive = false;
    struct call *call = call_of(request);

    if (call_query_only(call, parameters) < 0 || call_query_switch(call, "recursive", &is_recursive) < 0)
        return;
    struct transfer *transfer = begin(call, &sandbox);
    if (is_recursive)
        question.flags |= WIRE_FILE_RECURSIVE;
    if (transfer != NULL)
        ignore_result(start(transfer, sandbox, &question, &callbacks, NULL)); /* it was answered */
}
