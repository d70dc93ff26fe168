#include "gateway/net/request.h"

#include "base/clock.h"
#include "gateway/net/refusal.h"
#include "gateway/net/serving.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { REFUSAL_MOST = 4096 };

static bool is_id(const char *text)
{
    size_t length = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-");

    return length > 0 && length <= REQUEST_ID_MAX && text[length] == '\0';
}

static void set_id(struct request *request)
{
    const char *given = request_header(request, "X-Request-ID");

    if (given != NULL && is_id(given))
        memcpy(request->id, given, strlen(given) + 1);
    else
        server_make_id(request->connection->server, request->id);
}

static const char *lower_case(struct arena *arena, const char *text)
{
    char *copy = arena_copy(arena, text, strlen(text));

    for (char *at = copy; copy != NULL && *at != '\0'; at++)
        *at = (char)tolower((unsigned char)*at);
    return copy;
}

struct request *request_new(struct connection *connection)
{
    const struct http1 *http1 = &connection->http1;
    const struct server_options *options = &connection->server->options;
    struct request *request = malloc(sizeof *request);

    if (request == NULL)
        return NULL;
    *request = (struct request){
        .method = http1->method,
        .raw_target = http1->target,
        .peer = &connection->peer,
        .arena = arena_init(options->limits.arena_bytes),
        .context = options->context,
        .start_ns = clock_now_ns(),
        .connection = connection,
        .content_length = http1->content_length,
        .minor_version = http1->minor_version,
        .has_length = http1->has_length,
        .is_chunked = http1->is_chunked,
        .wants_keep_alive = http1->wants_keep_alive,
        .expects_continue = http1->expects_continue,
    };
    http1_headers(http1, &request->headers);
    set_id(request);
    request->host = lower_case(&request->arena, http1->host);
    if (request->host == NULL) {
        request_free(request);
        return NULL;
    }
    return request;
}

void request_free(struct request *request)
{
    request->connection->server->bodies_bytes -= request->body.length;
    buf_release(&request->body);
    arena_release(&request->arena);
    free(request);
}

const char *request_header(const struct request *request, const char *name)
{
    return headers_find(&request->headers, name);
}

const char *request_query(const struct request *request, const char *name)
{
    return target_query(&request->target, name);
}

const char *request_parameter(struct request *request, const char *name)
{
    for (size_t i = 0; i < request->match.parameter_count; i++) {
        const struct route_parameter *parameter = &request->match.parameters[i];
        if (strcmp(parameter->name, name) == 0)
            return arena_copy(&request->arena, request->target.path + parameter->offset, parameter->length);
    }
    return NULL;
}

void *request_alloc(struct request *request, size_t size)
{
    return arena_alloc(&request->arena, size);
}

int request_set_header(struct request *request, const char *name, const char *value)
{
    size_t i = 0;

    if (request_has_started(request) || !http_is_token(name, strlen(name)) || head_is_reserved(name) ||
        (value != NULL && !http_is_value(value)))
        return -EINVAL;
    while (i < request->answer_header_count && strcasecmp(request->answer_headers[i].name, name) != 0)
        i++;
    if (i == REQUEST_ANSWER_HEADERS_MAX)
        return -ENOBUFS;
    const char *own_name = arena_copy(&request->arena, name, strlen(name));
    const char *own_value = value != NULL ? arena_copy(&request->arena, value, strlen(value)) : NULL;
    if (own_name == NULL || (value != NULL && own_value == NULL))
        return -ENOMEM;
    request->answer_headers[i] = (struct header){own_name, own_value};
    request->answer_header_count += i == request->answer_header_count;
    return 0;
}

/* Can anything still be said to the client? */
static bool can_answer(const struct request *request)
{
    return request->connection->phase != PHASE_CLOSED && request->connection->phase != PHASE_LINGER;
}

/* Would what is left of the request's body be worth reading, for the sake of the connection? */
static bool has_little_left(const struct request *request)
{
    const struct http1 *http1 = &request->connection->http1;

    if (http1->state == HTTP1_ENDED || http1->state == HTTP1_ENDING)
        return true;
    return !request->is_chunked && !request->expects_continue &&
           request->content_length - request->body_received <= DISCARD_MOST;
}

static bool may_keep_alive(const struct request *request)
{
    const struct connection *connection = request->connection;

    return request->wants_keep_alive && !connection->must_close && !connection->server->is_stopping &&
           (!connection->has_eof || connection->pending.length + connection->input_left > 0) &&
           has_little_left(request);
}

static int write_head(struct request *request, const char *type, enum head_framing framing, uint64_t length)
{
    struct connection *connection = request->connection;
    struct server *server = connection->server;

    if (framing == HEAD_UNTIL_CLOSE || !may_keep_alive(request))
        connection->must_close = true;
    struct head head = {
        .status = request->answer_status,
        .minor_version = request->minor_version,
        .request_id = request->id,
        .date = server->date,
        .type = type,
        .headers = request->answer_headers,
        .header_count = request->answer_header_count,
        .framing = framing,
        .length = length,
        .keep_alive = !connection->must_close,
    };
    server->scratch.length = 0;
    return head_write(&server->scratch, &head);
}

static uv_buf_t buf_of(const void *data, size_t length)
{
    return (uv_buf_t){.base = (char *)(uintptr_t)data, .len = length};
}

/* Head and, if there is one, body, in one go. Whoever calls it has `is_ending` set or asks again whether it went well.
 */
static bool send_head(struct request *request, const char *type, enum head_framing framing, uint64_t length,
                      const void *body, size_t body_length)
{
    struct connection *connection = request->connection;
    int r = write_head(request, type, framing, length);

    if (r == 0) {
        uv_buf_t bufs[2] = {buf_of(connection->server->scratch.data, connection->server->scratch.length),
                            buf_of(body, body_length)};
        r = stream_write(&connection->stream, bufs, body_length > 0 ? 2 : 1);
    }
    return r == 0;
}

/* The connection is no longer of use; who called us learns that from us and not from `gone`. */
static void drop_client(struct request *request)
{
    bool was_ending = request->is_ending;

    request->is_gone = true;
    request->is_ending = true;
    connection_end(request->connection);
    request->is_ending = was_ending;
}

static void end_request(struct request *request)
{
    const struct server_options *options = &request->connection->server->options;

    request->is_ending = true;
    if (options->done != NULL)
        options->done(request, request->answer_status, request->answer_sent, clock_now_ns() - request->start_ns);
    connection_request_ended(request->connection);
}

void request_drop(struct request *request)
{
    end_request(request);
}

static bool has_body(unsigned status)
{
    return status >= 200 && status != 204 && status != 304;
}

void request_answer(struct request *request, unsigned status, const char *type, const void *body, size_t length)
{
    enum head_framing framing = has_body(status) ? HEAD_LENGTH : HEAD_NO_BODY;
    size_t to_send = framing == HEAD_LENGTH && request->method != METHOD_HEAD ? length : 0;

    request->is_ending = true;
    if (can_answer(request) && !request_has_started(request)) {
        request->answer_status = status;
        request->answer_sent = to_send;
        if (!send_head(request, framing == HEAD_LENGTH ? type : NULL, framing, length, body, to_send))
            drop_client(request);
    }
    end_request(request);
}

void request_refuse(struct request *request, unsigned status, const char *code, const char *message)
{
    const struct server_options *options = &request->connection->server->options;
    struct buf body = buf_init(REFUSAL_MOST);

    if (code == NULL)
        code = refusal_code(status);
    request->is_handed = true;
    /* The answer may come later; until then nothing more of a body is taken, or it would be refused again. */
    if (request->connection->phase == PHASE_BODY)
        connection_set_phase(request->connection, PHASE_HANDLER, 0);
    if (options->refuse != NULL) {
        options->refuse(request, status, code, message);
        return;
    }
    if (refusal_write(&body, code, message, request->id) < 0)
        body.length = 0;
    request_answer(request, status, "application/json", body.data, body.length);
    buf_release(&body);
}

void request_answer_bad(struct connection *connection, unsigned status, const char *message)
{
    struct server *server = connection->server;
    struct buf body = buf_init(REFUSAL_MOST);
    char id[REQUEST_ID_MAX + 1];

    server_make_id(server, id);
    struct head head = {
        .status = status,
        .minor_version = 1,
        .request_id = id,
        .date = server->date,
        .type = "application/json",
        .framing = HEAD_LENGTH,
    };
    server->scratch.length = 0;
    int r = refusal_write(&body, refusal_code(status), message, id);
    head.length = body.length;
    if (r == 0)
        r = head_write(&server->scratch, &head);
    uv_buf_t bufs[2] = {buf_of(server->scratch.data, server->scratch.length), buf_of(body.data, body.length)};
    if (r == 0)
        r = stream_write(&connection->stream, bufs, 2);
    buf_release(&body);
    if (r < 0)
        connection_end(connection);
}

bool request_has_started(const struct request *request)
{
    return request->answer_status != 0;
}

void request_start(struct request *request, unsigned status, const char *type, int64_t length)
{
    enum head_framing framing = !has_body(status)             ? HEAD_NO_BODY
                                : length >= 0                 ? HEAD_LENGTH
                                : request->minor_version == 0 ? HEAD_UNTIL_CLOSE
                                                              : HEAD_CHUNKED;

    if (!can_answer(request) || request_has_started(request))
        return;
    request->answer_status = status;
    request->has_answer_length = framing == HEAD_LENGTH;
    request->is_answer_chunked = framing == HEAD_CHUNKED;
    request->has_no_answer_body = framing == HEAD_NO_BODY || request->method == METHOD_HEAD;
    request->answer_left = length >= 0 ? (uint64_t)length : 0;
    if (!send_head(request, framing == HEAD_NO_BODY ? NULL : type, framing, request->answer_left, NULL, 0))
        drop_client(request);
}

static int send_piece(struct request *request, const void *data, size_t length)
{
    char front[24];

    if (!request->is_answer_chunked) {
        uv_buf_t buf = buf_of(data, length);
        return stream_write(&request->connection->stream, &buf, 1);
    }
    int n = snprintf(front, sizeof front, "%zx\r\n", length);
    uv_buf_t bufs[3] = {buf_of(front, (size_t)n), buf_of(data, length), buf_of("\r\n", 2)};
    return stream_write(&request->connection->stream, bufs, 3);
}

int request_write(struct request *request, const void *data, size_t length)
{
    const struct server_limits *limits = &request->connection->server->options.limits;

    if (!can_answer(request) || !request_has_started(request))
        return -EPIPE;
    if (request->has_no_answer_body)
        return -EPIPE;
    if (length == 0)
        return 1;
    /* More than was promised would be taken for the next answer. */
    if ((request->has_answer_length && length > request->answer_left) || send_piece(request, data, length) < 0) {
        drop_client(request);
        return -EPIPE;
    }
    request->answer_left -= request->has_answer_length ? length : 0;
    request->answer_sent += length;
    size_t unsent = request_unsent(request);
    if (unsent > limits->unsent_cap_bytes) {
        drop_client(request);
        return -ENOBUFS;
    }
    request->wants_drain = unsent > limits->unsent_low_bytes;
    return request->wants_drain ? 0 : 1;
}

static bool send_end(struct request *request)
{
    uv_buf_t buf = buf_of("0\r\n\r\n", 5);

    if (request->has_no_answer_body)
        return true;
    if (request->is_answer_chunked)
        return stream_write(&request->connection->stream, &buf, 1) == 0;
    return !request->has_answer_length || request->answer_left == 0;
}

void request_finish(struct request *request)
{
    request->is_ending = true;
    if (can_answer(request) && (!request_has_started(request) || !send_end(request)))
        drop_client(request);
    end_request(request);
}

void request_abort(struct request *request)
{
    request->is_ending = true;
    drop_client(request);
    end_request(request);
}

size_t request_unsent(const struct request *request)
{
    return can_answer(request) ? stream_unsent(&request->connection->stream) : 0;
}

void request_pause(struct request *request)
{
    request->is_paused = true;
}

void request_resume(struct request *request)
{
    request->is_paused = false;
    connection_continue(request->connection);
}

void request_proceed(struct request *request)
{
    struct connection *connection = request->connection;

    if (connection->phase != PHASE_HOOK) {
        end_request(request);
        return;
    }
    exchange_admit(connection);
    connection_continue(connection);
}

void request_tell_gone(struct request *request)
{
    if (request->is_gone || request->is_ending)
        return;
    request->is_gone = true;
    if (request->events != NULL && request->events->gone != NULL)
        request->events->gone(request);
}
