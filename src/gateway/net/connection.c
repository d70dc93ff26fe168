/*
 * Theory of operation. Bytes come in through on_data(). If the phase takes input they are parsed at once, else they are
 * kept in `pending` until it does; when too much is pending the socket is no longer read. Parsing goes on for as long
 * as there are bytes and the phase takes them: a handler that answers at once changes the phase from within, and the
 * loop in process() goes on with the next request instead of calling itself.
 *
 * Reading does not stop while a handler works, since that is how a client that went away is noticed.
 */
#include "gateway/net/serving.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static struct connection *connection_of(struct stream *stream)
{
    return (struct connection *)((char *)stream - offsetof(struct connection, stream));
}

/* Is there nothing to be done for it? Then it may have to make room: slow heads would else keep everybody out. */
static bool is_evictable(const struct connection *connection, enum phase phase)
{
    if (connection->is_refused)
        return false;
    return phase == PHASE_IDLE || phase == PHASE_HEAD || phase == PHASE_DISCARD || phase == PHASE_LINGER;
}

void connection_set_phase(struct connection *connection, enum phase phase, uint64_t limit_ms)
{
    if (is_evictable(connection, connection->phase))
        TAILQ_REMOVE(&connection->server->idle, connection, idle);
    connection->phase = phase;
    connection->deadline_ms = limit_ms > 0 ? connection_now(connection) + limit_ms : 0;
    if (is_evictable(connection, phase))
        TAILQ_INSERT_TAIL(&connection->server->idle, connection, idle);
}

static void free_if_over(struct connection *connection)
{
    struct server *server = connection->server;

    if (!connection->is_released || connection->request != NULL)
        return;
    http1_release(&connection->http1);
    buf_release(&connection->pending);
    free(connection);
    server_check_stopped(server);
}

static void on_closed(struct stream *stream)
{
    struct connection *connection = connection_of(stream);

    TAILQ_REMOVE(&connection->server->connections, connection, all);
    connection->server->handles--;
    connection->is_released = true;
    free_if_over(connection);
}

/* A request that nobody was given yet ends with its connection. */
static void leave_request(struct connection *connection)
{
    struct request *request = connection->request;

    if (request == NULL || request->is_ending)
        return;
    if (request->is_handed)
        request_tell_gone(request);
    else
        request_drop(request);
}

void connection_end(struct connection *connection)
{
    if (connection->phase == PHASE_CLOSED)
        return;
    connection_set_phase(connection, PHASE_CLOSED, 0);
    server_remove_ready(connection->server, connection);
    if (connection->is_refused)
        connection->server->refusing--;
    else
        connection->server->counts.connections--;
    stream_close(&connection->stream);
    leave_request(connection);
}

void connection_linger(struct connection *connection)
{
    connection_set_phase(connection, PHASE_LINGER, connection_limits(connection)->linger_ms);
    connection->pending.length = 0;
    server_remove_ready(connection->server, connection);
    connection->discard_left = LINGER_MOST;
    connection->linger_ms = connection_now(connection) + LINGER_TIMES * connection_limits(connection)->linger_ms;
    stream_shut(&connection->stream);
    if (connection->has_eof && stream_unsent(&connection->stream) == 0)
        connection_end(connection);
    else
        stream_read_start(&connection->stream);
}

void connection_stop(struct connection *connection)
{
    connection->must_close = true;
    if (connection->phase == PHASE_IDLE)
        connection_linger(connection);
}

/* Who does not take the answers gets no others: requests that come ahead of them would fill our memory with those. */
static bool has_room_for_answers(const struct connection *connection)
{
    return stream_unsent(&connection->stream) <= connection_limits(connection)->unsent_low_bytes;
}

static bool takes_input(const struct connection *connection)
{
    switch (connection->phase) {
    case PHASE_IDLE:
    case PHASE_HEAD:
        return has_room_for_answers(connection);
    case PHASE_DISCARD:
        return true;
    case PHASE_BODY:
        return connection->request == NULL || !connection->request->is_paused;
    case PHASE_HOOK:
    case PHASE_HANDLER:
    case PHASE_LINGER:
    case PHASE_CLOSED:
        break;
    }
    return false;
}

void connection_fail(struct connection *connection, unsigned status, const char *message)
{
    struct request *request = connection->request;

    connection->must_close = true;
    if (request != NULL && request_has_started(request)) {
        connection_end(connection);
        return;
    }
    if (request != NULL && !request->is_handed) {
        request_refuse(request, status, NULL, message);
        return;
    }
    const struct server_options *options = &connection->server->options;
    if (request == NULL && options->bad != NULL)
        options->bad(options->context, &connection->peer, status, message);
    if (request != NULL)
        request->answer_status = status;
    request_answer_bad(connection, status, message);
    if (connection->phase != PHASE_CLOSED)
        connection_linger(connection);
    leave_request(connection);
}

void connection_make_idle(struct connection *connection)
{
    http1_reset(&connection->http1);
    connection_set_phase(connection, PHASE_IDLE, connection_limits(connection)->idle_ms);
}

static void hold(struct connection *connection, const uint8_t *data, size_t length)
{
    if (length > 0 && buf_append(&connection->pending, data, length) < 0) {
        connection_end(connection);
        return;
    }
    if (connection->pending.length >= connection_limits(connection)->pending_bytes)
        stream_read_stop(&connection->stream);
}

/* All that came is used. Will more come, and is it still wanted? */
static void settle(struct connection *connection)
{
    if (connection->phase == PHASE_CLOSED || connection->phase == PHASE_LINGER)
        return;
    bool is_last = connection->must_close || (connection->has_eof && connection->pending.length == 0);
    if (connection->phase == PHASE_IDLE && is_last)
        connection_linger(connection);
    else if (connection->has_eof && connection->pending.length == 0 && takes_input(connection))
        connection_end(connection);
}

static void process(struct connection *connection, const uint8_t *data, size_t length)
{
    struct http1_event event = {.type = HTTP1_END};
    unsigned requests = 0;

    connection->is_processing = true;
    while (takes_input(connection) && event.type != HTTP1_MORE && requests < TURN_REQUESTS) {
        http1_next(&connection->http1, &data, &length, &event);
        connection->input_left = length;
        exchange_event(connection, &event);
        requests += event.type == HTTP1_END;
    }
    connection->is_processing = false;
    connection->input_left = 0;
    if (connection->phase != PHASE_CLOSED && connection->phase != PHASE_LINGER)
        hold(connection, data, length);
    if (takes_input(connection) && connection->pending.length > 0)
        server_add_ready(connection->server, connection);
    settle(connection);
}

void connection_continue(struct connection *connection)
{
    if (connection->is_processing || !takes_input(connection))
        return;
    server_remove_ready(connection->server, connection);
    struct buf taken = connection->pending;
    connection->pending = buf_init(taken.cap);
    process(connection, taken.data, taken.length);
    buf_release(&taken);
    if (connection->phase != PHASE_CLOSED && connection->pending.length < connection_limits(connection)->pending_bytes)
        stream_read_start(&connection->stream);
}

void connection_request_ended(struct connection *connection)
{
    struct request *request = connection->request;

    connection->request = NULL;
    connection->server->counts.requests--;
    request_free(request);
    if (connection->phase == PHASE_CLOSED) {
        free_if_over(connection);
        return;
    }
    if (connection->phase == PHASE_LINGER)
        return;
    if (connection->must_close)
        connection_linger(connection);
    else if (connection->http1.state == HTTP1_ENDED)
        connection_make_idle(connection);
    else {
        connection_set_phase(connection, PHASE_DISCARD, connection_limits(connection)->headers_ms);
        connection->discard_left = DISCARD_MOST;
    }
    connection_continue(connection);
}

/*
 * A client that sends all before it reads would lose the answer if the connection were closed meanwhile: the kernel
 * says RST to what nobody has read, and that throws away what the client has not read (RFC 9112, 9.6).
 */
static void drop(struct connection *connection, size_t length)
{
    uint64_t deadline_ms = connection_now(connection) + connection_limits(connection)->linger_ms;

    connection->discard_left -= length < connection->discard_left ? length : connection->discard_left;
    connection->deadline_ms = deadline_ms < connection->linger_ms ? deadline_ms : connection->linger_ms;
    if (connection->discard_left == 0)
        connection_end(connection);
}

static void on_data(struct stream *stream, const uint8_t *data, size_t length)
{
    struct connection *connection = connection_of(stream);

    if (connection->phase == PHASE_LINGER)
        drop(connection, length);
    else if (connection->pending.length > 0 || !takes_input(connection))
        hold(connection, data, length);
    else
        process(connection, data, length);
}

static void on_stream_end(struct stream *stream, int error)
{
    struct connection *connection = connection_of(stream);

    connection->has_eof = true;
    if (error < 0) {
        connection_end(connection);
    } else if (connection->phase == PHASE_LINGER) {
        if (stream_unsent(stream) == 0)
            connection_end(connection);
    } else if (connection->phase == PHASE_HANDLER) {
        request_tell_gone(connection->request);
    } else if (!connection->is_processing) {
        settle(connection);
    }
}

static void on_written(struct stream *stream)
{
    struct connection *connection = connection_of(stream);
    struct request *request = connection->request;
    size_t unsent = stream_unsent(stream);

    if (connection->phase == PHASE_LINGER && unsent == 0) {
        connection->deadline_ms = connection_now(connection) + connection_limits(connection)->linger_ms;
        if (connection->has_eof)
            connection_end(connection);
        return;
    }
    if (connection->pending.length > 0 && (connection->phase == PHASE_IDLE || connection->phase == PHASE_HEAD)) {
        connection_continue(connection);
        return;
    }
    if (request == NULL || !request->wants_drain || unsent > connection_limits(connection)->unsent_low_bytes / 2)
        return;
    request->wants_drain = false;
    if (request->events != NULL && request->events->drain != NULL)
        request->events->drain(request);
}

static const struct stream_events stream_events = {
    .data = on_data,
    .end = on_stream_end,
    .written = on_written,
    .closed = on_closed,
};

/* Room for one more: true when there is, or the longest idle one had to go. */
static bool make_room(struct server *server)
{
    struct connection *idle = TAILQ_FIRST(&server->idle);

    if (server->counts.connections < server->options.limits.connections_max)
        return true;
    if (idle == NULL)
        return false;
    server->counts.connections_evicted++;
    connection_end(idle);
    return true;
}

/* Tell it, as far as that costs little: a client that only sees its connection end does not know why. */
static void turn_away(struct connection *connection, bool is_tls)
{
    connection->server->counts.connections_refused++;
    if (!is_tls && connection->server->refusing <= REFUSING_MOST) {
        request_answer_bad(connection, 503, "there are too many connections");
        if (connection->phase != PHASE_CLOSED)
            connection_linger(connection);
    } else {
        connection_end(connection);
    }
}

void connection_accept(struct listener *listener)
{
    struct server *server = listener->server;
    struct connection *connection = calloc(1, sizeof *connection);
    struct http1_limits http1_limits = {server->options.limits.request_line_bytes,
                                        server->options.limits.headers_bytes};

    /* uv announces no other until this one is accepted: the next tick tries again. */
    listener->has_waiting = connection == NULL;
    if (connection == NULL)
        return;
    bool has_room = make_room(server);
    connection->server = server;
    connection->pending = buf_init(server->options.limits.pending_bytes + AHEAD_MOST);
    connection->phase = PHASE_HOOK; /* in no list yet */
    http1_init(&connection->http1, &http1_limits);
    int r = stream_accept(&connection->stream, &listener->uv.stream, listener->tls, &server->shared, &stream_events,
                          &connection->peer);
    TAILQ_INSERT_TAIL(&server->connections, connection, all);
    server->handles++;
    connection->is_refused = !has_room;
    server->refusing += !has_room;
    server->counts.connections += has_room;
    server->counts.connections_total++;
    /* Until TLS is ready, the first byte counts from here. */
    connection_set_phase(connection, PHASE_IDLE,
                         listener->tls != NULL ? server->options.limits.headers_ms : server->options.limits.idle_ms);
    if (r < 0)
        connection_end(connection);
    else if (!has_room)
        turn_away(connection, listener->tls != NULL);
    else
        stream_read_start(&connection->stream);
}

/* Has the client taken anything lately of what waits for it? */
static bool is_stalled(struct connection *connection, uint64_t now_ms)
{
    bool is_waiting = stream_unsent(&connection->stream) > 0;
    uint64_t sent = is_waiting ? stream_sent(&connection->stream) : 0;

    if (!is_waiting || sent != connection->sent_before) {
        connection->sent_before = sent;
        connection->progress_ms = now_ms;
    }
    return now_ms - connection->progress_ms >= connection_limits(connection)->write_stall_ms;
}

/* A collected body that comes drop by drop. */
static bool is_too_slow(const struct connection *connection, uint64_t now_ms)
{
    const struct request *request = connection->request;
    const struct server_limits *limits = connection_limits(connection);

    if (connection->phase != PHASE_BODY || request->route->body == ROUTE_STREAM)
        return false;
    return now_ms - connection->body_ms >=
           limits->body_silence_ms + request->body_received * 1000 / limits->body_bytes_per_s;
}

static void time_out(struct connection *connection)
{
    connection->server->counts.timeouts++;
    if (connection->phase == PHASE_HEAD)
        connection_fail(connection, 408, "the request did not come in time");
    else if (connection->phase == PHASE_BODY)
        connection_fail(connection, 408, "the body did not come in time");
    else
        connection_end(connection);
}

void connection_tick(struct connection *connection, uint64_t now_ms)
{
    struct request *request = connection->request;

    if (connection->phase == PHASE_CLOSED)
        return;
    if (is_stalled(connection, now_ms)) {
        connection->server->counts.timeouts++;
        connection_end(connection);
        return;
    }
    if (connection->stream.tls != NULL && !connection->is_greeted && tls_is_ready(connection->stream.tls)) {
        connection->is_greeted = true;
        if (connection->phase == PHASE_IDLE)
            connection->deadline_ms = now_ms + connection_limits(connection)->idle_ms;
    }
    /* Who was told to wait is not late. */
    if (connection->phase == PHASE_BODY && request->is_paused)
        connection->deadline_ms = now_ms + connection_limits(connection)->body_silence_ms;
    /* Half of an answer is not cut off for being read slowly. */
    if (connection->phase == PHASE_LINGER && stream_unsent(&connection->stream) > 0)
        connection->deadline_ms = now_ms + connection_limits(connection)->linger_ms;
    if ((connection->deadline_ms > 0 && now_ms >= connection->deadline_ms) || is_too_slow(connection, now_ms))
        time_out(connection);
}
