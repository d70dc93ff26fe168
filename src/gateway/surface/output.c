/*
 * An exec's output: what is kept as JSON, or from `after` on as it comes, as server-sent events or as raw bytes. What
 * the client does not take, the command waits for (exec.h).
 *
 * Text in events is cut only between characters: the bytes of one that is not complete yet are held until it is. An
 * event's id is where to go on with `after`, so that nothing that was held is skipped.
 */
#include "base/utf8.h"
#include "gateway/net/sse.h"
#include "gateway/store/query.h"
#include "gateway/surface/call.h"
#include "gateway/surface/history.h"
#include "gateway/surface/pulse.h"
#include "gateway/surface/routes.h"
#include "gateway/surface/run.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE_BYTES = 4 << 20, STORE_PAGE_BYTES = 256 << 10, EVENT_BYTES = 1 << 20, ID_TEXT = 24, SEQUENCE_MAX = 4 };

enum form { FORM_JSON, FORM_EVENTS, FORM_RAW };

struct carry {
    uint8_t bytes[SEQUENCE_MAX];
    size_t length;
    uint64_t seq; /* of the first */
};

struct follow {
    struct call *call;
    enum form form;
    uint64_t after;
    bool follows;
    bool is_base64;
    bool is_waiting; /* for the client */
    int only;        /* enum exec_stream, -1: both */
    struct carry carries[EXEC_STREAMS];
    struct exec_follower *follower;
    struct pulse *pulse;
    struct history history; /* of one that only the store has */
};

static const char *const stream_names[EXEC_STREAMS] = {"stdout", "stderr"};

static void write_data(struct writer *writer, const struct follow *follow, const void *data, size_t length)
{
    if (follow->is_base64)
        writer_base64(writer, "data", data, length);
    else
        writer_bytes(writer, "data", data, length);
}

static bool is_wanted(const struct follow *follow, const struct exec_chunk *chunk)
{
    return follow->only < 0 || follow->only == (int)chunk->stream;
}

static void write_chunk(struct writer *writer, const struct follow *follow, const struct exec_chunk *chunk)
{
    writer_open(writer, NULL, '{');
    writer_number(writer, "seq", (int64_t)chunk->seq);
    writer_text(writer, "stream", stream_names[chunk->stream]);
    write_data(writer, follow, chunk->data, chunk->length);
    writer_close(writer, '}');
}

/* A page of what is kept, without waiting. */
static void answer_page(struct follow *follow, const struct exec *exec)
{
    struct writer writer = writer_init(CALL_ANSWER_MAX);
    struct exec_chunk chunk;
    struct exec_info info;
    uint64_t seq = follow->after;
    size_t bytes = 0;
    int r = 0;

    exec_get(exec, &info);
    writer_open(&writer, NULL, '{');
    writer_text(&writer, "exec_id", info.id);
    writer_open(&writer, "chunks", '[');
    while (bytes < PAGE_BYTES && (r = exec_read(exec, seq, &chunk)) == 1) {
        seq = chunk.seq + chunk.length;
        if (!is_wanted(follow, &chunk))
            continue;
        bytes += chunk.length;
        write_chunk(&writer, follow, &chunk);
    }
    writer_close(&writer, ']');
    writer_number(&writer, "first", (int64_t)info.seq_first);
    writer_number(&writer, "next", (int64_t)seq);
    writer_switch(&writer, "more", r == 1 || info.result == NULL);
    writer_text(&writer, "status", info.result != NULL ? "exited" : "running");
    if (info.result != NULL)
        writer_number(&writer, "exit_code", exec_exit_code(info.result));
    else
        writer_null(&writer, "exit_code");
    writer_close(&writer, '}');
    call_answer(follow->call, 200, &writer);
}

static void stop(struct follow *follow)
{
    exec_follower_free(follow->follower);
    follow->follower = NULL;
    pulse_stop(follow->pulse);
    follow->pulse = NULL;
    follow->call->request->events = NULL;
}

static void gone(struct request *request)
{
    struct call *call = call_of(request);

    stop(call->state);
    call_abort(call);
}

/* Where a client goes on that has got everything up to `seq` but for what is held. */
static uint64_t cursor(const struct follow *follow, uint64_t seq)
{
    for (size_t i = 0; i < EXEC_STREAMS; i++) {
        if (follow->carries[i].length > 0 && follow->carries[i].seq < seq)
            seq = follow->carries[i].seq;
    }
    return seq;
}

static int send_event(struct follow *follow, const char *name, uint64_t seq, uint64_t next, const void *data,
                      size_t length)
{
    struct writer writer = writer_init(EVENT_BYTES);
    char id[ID_TEXT];

    (void)snprintf(id, sizeof id, "%" PRIu64, cursor(follow, next));
    writer_open(&writer, NULL, '{');
    writer_number(&writer, "seq", (int64_t)seq);
    write_data(&writer, follow, data, length);
    writer_close(&writer, '}');
    int r = writer_end(&writer);
    if (r == 0)
        r = sse_event(follow->call->request, name, id, writer.buf.data, writer.buf.length);
    writer_release(&writer);
    return r;
}

/* As text: with what was held before it, and without what is not complete. */
static int send_text(struct follow *follow, const struct exec_chunk *chunk)
{
    struct carry *carry = &follow->carries[chunk->stream];
    uint64_t seq = carry->length > 0 ? carry->seq : chunk->seq;
    struct buf text = buf_init(EVENT_BYTES);

    int r = buf_append(&text, carry->bytes, carry->length);
    if (r == 0)
        r = buf_append(&text, chunk->data, chunk->length);
    if (r < 0) {
        buf_release(&text);
        return r;
    }
    size_t cut = utf8_cut(text.data, text.length);
    *carry = (struct carry){.length = text.length - cut, .seq = chunk->seq + chunk->length - (text.length - cut)};
    memcpy(carry->bytes, text.data + cut, carry->length);
    r = cut == 0 ? 1 : send_event(follow, stream_names[chunk->stream], seq, chunk->seq + chunk->length, text.data, cut);
    buf_release(&text);
    return r;
}

/* As request_write(). Pieces are small enough that an event holds them whatever they are. */
static int send_chunk(struct follow *follow, const struct exec_chunk *chunk)
{
    enum { PIECE = 64 << 10 };
    int r = 1;

    if (follow->form == FORM_RAW)
        return request_write(follow->call->request, chunk->data, chunk->length);
    for (size_t done = 0; r >= 0 && done < chunk->length;) {
        size_t length = chunk->length - done < PIECE ? chunk->length - done : PIECE;
        struct exec_chunk piece = {chunk->seq + done, chunk->stream, chunk->data + done, length};
        int sent = follow->is_base64 ? send_event(follow, stream_names[piece.stream], piece.seq, piece.seq + length,
                                                  piece.data, length)
                                     : send_text(follow, &piece);
        r = sent < 0 || r == 0 ? (sent < 0 ? sent : 0) : sent;
        done += length;
    }
    return r;
}

/* Bytes that never became a character are told as what they are: U+FFFD. */
static void send_rest(struct follow *follow, uint64_t next)
{
    for (size_t i = 0; i < EXEC_STREAMS; i++) {
        struct carry carry = follow->carries[i];
        follow->carries[i].length = 0;
        if (carry.length > 0)
            ignore_result(send_event(follow, stream_names[i], carry.seq, next, carry.bytes, carry.length));
    }
}

static void finish(struct follow *follow)
{
    struct call *call = follow->call;
    struct writer writer = writer_init(EVENT_BYTES);
    struct exec_info info;
    char id[ID_TEXT];

    exec_get(exec_follower_exec(follow->follower), &info);
    if (follow->form == FORM_EVENTS) {
        send_rest(follow, info.seq_next);
        (void)snprintf(id, sizeof id, "%" PRIu64, info.seq_next);
        writer_open(&writer, NULL, '{');
        writer_text(&writer, "exec_id", info.id);
        if (info.result != NULL)
            run_write_figures(&writer, info.result);
        writer_close(&writer, '}');
        if (info.result != NULL && writer_end(&writer) == 0)
            ignore_result(sse_event(call->request, "exit", id, writer.buf.data, writer.buf.length));
        writer_release(&writer);
    }
    stop(follow);
    call_finish(call);
}

/* Everything that there is now and the client takes. */
static void pump(struct follow *follow)
{
    struct exec_chunk chunk;
    int r = 1;

    while (r == 1 && (r = exec_follower_next(follow->follower, &chunk)) == 1) {
        if (!is_wanted(follow, &chunk))
            continue;
        r = send_chunk(follow, &chunk);
        follow->is_waiting = r == 0;
    }
    if (r == -ENODATA || (r == 0 && !follow->is_waiting && !follow->follows)) {
        finish(follow);
    } else if (r < 0) {
        stop(follow);
        call_abort(follow->call);
    }
}

static void news(void *data, struct exec_follower *follower __attribute__((unused)))
{
    struct follow *follow = data;

    if (!follow->is_waiting)
        pump(follow);
}

static void drain(struct request *request)
{
    struct follow *follow = call_of(request)->state;

    follow->is_waiting = false;
    pump(follow);
}

static void beat(void *data)
{
    struct follow *follow = data;

    /* After an error `gone` does not come any more. */
    if (!follow->is_waiting && follow->form == FORM_EVENTS && sse_heartbeat(follow->call->request) < 0)
        gone(follow->call->request);
}

static void begin(struct call *call)
{
    static const struct request_events events = {.drain = drain, .gone = gone};
    struct follow *follow = call->state;
    struct exec *exec = exec_find(call->surface->options.engine, call->exec, NULL);
    struct exec_follow_options options = {.after = follow->after};
    struct error err = {0};

    if (exec == NULL) {
        call_refuse(call, 404, "not_found", "exec %s has been forgotten", call->exec);
        return;
    }
    if (exec_follow(exec, &options, news, follow, &follow->follower, &err) < 0) {
        call_fail(call, &err);
        return;
    }
    call->request->events = &events;
    if (follow->form == FORM_EVENTS)
        sse_start(call->request);
    else
        request_start(call->request, 200, "application/octet-stream", REQUEST_LENGTH_UNKNOWN);
    follow->pulse = pulse_start(call->surface->options.loop, PULSE_MS, beat, follow);
    if (call->request->is_gone)
        gone(call->request);
    else
        pump(follow);
}

/* From here to output_get(): the same for an exec that has ended and that only the store has. */
static void finish_stored(struct follow *follow)
{
    struct call *call = follow->call;
    struct writer writer = writer_init(EVENT_BYTES);
    char id[ID_TEXT];

    if (follow->form == FORM_EVENTS) {
        send_rest(follow, follow->after);
        (void)snprintf(id, sizeof id, "%" PRIu64, follow->after);
        writer_open(&writer, NULL, '{');
        writer_text(&writer, "exec_id", call->exec);
        history_write_figures(&writer, &follow->history);
        writer_close(&writer, '}');
        if (writer_end(&writer) == 0)
            ignore_result(sse_event(call->request, "exit", id, writer.buf.data, writer.buf.length));
        writer_release(&writer);
    }
    call->request->events = NULL;
    call_finish(call);
}

static struct exec_chunk chunk_of(const struct store_output *row)
{
    return (struct exec_chunk){row->position, row->stream == 1 ? EXEC_STDOUT : EXEC_STDERR, (const uint8_t *)row->data,
                               row->length};
}

static void ask_store(struct follow *follow);

static void stored_page(void *data, const struct store_page *page)
{
    struct follow *follow = data;
    int r = page->result;

    for (size_t i = 0; r >= 0 && i < page->count; i++) {
        struct exec_chunk chunk = chunk_of(&page->outputs[i]);
        follow->after = chunk.seq + chunk.length;
        r = is_wanted(follow, &chunk) ? send_chunk(follow, &chunk) : 1;
        follow->is_waiting = follow->is_waiting || r == 0;
    }
    if (r < 0 || follow->call->request->is_gone) {
        follow->call->request->events = NULL;
        call_abort(follow->call);
    } else if (page->count == 0 || page->next == 0) {
        finish_stored(follow);
    } else if (!follow->is_waiting) {
        ask_store(follow);
    }
}

static void ask_store(struct follow *follow)
{
    struct call *call = follow->call;

    follow->is_waiting = false;
    if (query_output(call->surface->options.store, call->exec, follow->after, STORE_PAGE_BYTES, stored_page, follow) !=
        NULL)
        return;
    call->request->events = NULL;
    call_abort(call);
}

static void stored_drain(struct request *request)
{
    struct follow *follow = call_of(request)->state;

    if (follow->is_waiting)
        ask_store(follow);
}

/* While the store is asked the request has to stay; stored_page() sees that nobody is there any more. */
static void stored_gone(struct request *request)
{
    struct call *call = call_of(request);
    struct follow *follow = call->state;

    if (!follow->is_waiting)
        return;
    request->events = NULL;
    call_abort(call);
}

static void begin_stored(struct call *call)
{
    static const struct request_events events = {.drain = stored_drain, .gone = stored_gone};
    struct follow *follow = call->state;

    call->request->events = &events;
    if (follow->form == FORM_EVENTS)
        sse_start(call->request);
    else
        request_start(call->request, 200, "application/octet-stream", REQUEST_LENGTH_UNKNOWN);
    ask_store(follow);
}

static void answer_stored_page(void *data, const struct store_page *page)
{
    struct follow *follow = data;
    struct writer writer = writer_init(CALL_ANSWER_MAX);
    uint64_t first = page->count > 0 ? page->outputs[0].position : follow->after;
    uint64_t next = follow->after;

    if (page->result < 0) {
        call_refuse(follow->call, 503, "unavailable", "the store can't be read now: %s",
                    page->message != NULL ? page->message : "");
        return;
    }
    writer_open(&writer, NULL, '{');
    writer_text(&writer, "exec_id", follow->call->exec);
    writer_open(&writer, "chunks", '[');
    for (size_t i = 0; i < page->count; i++) {
        struct exec_chunk chunk = chunk_of(&page->outputs[i]);
        next = chunk.seq + chunk.length;
        if (is_wanted(follow, &chunk))
            write_chunk(&writer, follow, &chunk);
    }
    writer_close(&writer, ']');
    writer_number(&writer, "first", (int64_t)first);
    writer_number(&writer, "next", (int64_t)next);
    writer_switch(&writer, "more", page->next != 0);
    writer_text(&writer, "status", "exited");
    writer_number(&writer, "exit_code", follow->history.row.exit_code);
    writer_close(&writer, '}');
    call_answer(follow->call, 200, &writer);
}

static void found_stored(struct call *call)
{
    struct follow *follow = call->state;

    if (follow->form != FORM_JSON)
        call_record(call, begin_stored);
    else if (query_output(call->surface->options.store, call->exec, follow->after, PAGE_BYTES, answer_stored_page,
                          follow) == NULL)
        call_refuse(call, 503, "unavailable", "there is not enough memory for this request");
}

static int take_stream(struct call *call, struct follow *follow)
{
    const char *name = request_query(call->request, "stream");

    follow->only = -1;
    for (int i = 0; name != NULL && i < EXEC_STREAMS; i++) {
        if (strcmp(name, stream_names[i]) == 0)
            follow->only = i;
    }
    if (name == NULL || follow->only >= 0)
        return 0;
    call_refuse(call, 400, "invalid_request", "stream: must be stdout or stderr");
    return -EINVAL;
}

static int take_form(struct call *call, struct follow *follow)
{
    const char *accept = request_header(call->request, "accept");
    const char *encoding = request_query(call->request, "encoding");

    if (encoding != NULL && strcmp(encoding, "base64") != 0 && strcmp(encoding, "utf-8") != 0) {
        call_refuse(call, 400, "invalid_request", "encoding: must be utf-8 or base64");
        return -EINVAL;
    }
    follow->is_base64 = encoding != NULL && *encoding == 'b';
    if (accept != NULL && strstr(accept, "application/octet-stream") != NULL)
        follow->form = FORM_RAW;
    else if (follow->follows || (accept != NULL && strstr(accept, "text/event-stream") != NULL))
        follow->form = FORM_EVENTS;
    uint64_t last = follow->after;
    int r = call_last_event(call, &last);
    if (r == 0 && follow->form == FORM_EVENTS)
        follow->after = last;
    return r;
}

void output_get(struct request *request)
{
    static const char *const parameters[] = {"after", "follow", "stream", "encoding", NULL};
    struct call *call = call_of(request);
    struct follow *follow = call_alloc(call, sizeof *follow);

    if (follow == NULL)
        return;
    follow->call = call;
    call->state = follow;
    if (call_query_only(call, parameters) < 0 || call_query_number(call, "after", 0, INT64_MAX, &follow->after) < 0 ||
        call_query_switch(call, "follow", &follow->follows) < 0 || take_stream(call, follow) < 0 ||
        take_form(call, follow) < 0)
        return;
    if (!call_has_exec(call)) {
        history_find(call, &follow->history, found_stored);
        return;
    }
    const struct exec *exec = call_exec(call);
    if (follow->form == FORM_JSON)
        answer_page(follow, exec);
    else
        call_record(call, begin);
}
