/*
 * Theory of operation. The parser's events move a request on: HEAD makes it and asks the hook, then the router's
 * verdict and the announced body are judged before any of that body is read; BODY is collected, streamed or dropped;
 * END calls the handler of a collected body. Each call out may end the request, and then the connection is in another
 * phase when it returns: nothing of the request is touched after one.
 */
#include "gateway/net/serving.h"

#include <string.h>
#include <strings.h>

static bool is_own_host(const struct request *request)
{
    return request->target.authority == NULL || strcasecmp(request->target.authority, request->host) == 0;
}

static const char *refuses_target(struct request *request, const struct http1 *http1)
{
    int r = target_parse(http1->target, strlen(http1->target), &request->arena, &request->target);

    if (r == -E2BIG)
        return "there are too many query parameters";
    if (r < 0)
        return "the request target is malformed";
    if (request->target.path[0] == '*' && request->method != METHOD_OPTIONS)
        return "only OPTIONS can ask for *";
    return is_own_host(request) ? NULL : "the request target names another host than Host";
}

static void begin_request(struct connection *connection)
{
    struct server *server = connection->server;
    struct request *request = request_new(connection);

    if (request == NULL) {
        connection_end(connection);
        return;
    }
    connection->request = request;
    server->counts.requests++;
    server->counts.requests_total++;
    connection_set_phase(connection, PHASE_HOOK, 0);
    const char *refusal = refuses_target(request, &connection->http1);
    if (refusal != NULL) {
        connection_fail(connection, 400, refusal);
        return;
    }
    router_match(server->options.router, request->method, request->target.path, request->target.path_length,
                 &request->match);
    request->route = request->match.route;
    if (server->options.before == NULL) {
        exchange_admit(connection);
        return;
    }
    request->is_handed = true;
    if (server->options.before(request) == BEFORE_GO_ON)
        exchange_admit(connection);
}

/* 0, or the status to refuse it with. */
static unsigned check_body(const struct request *request)
{
    const struct route *route = request->route;
    bool has_body = request->is_chunked || request->content_length > 0;
    const char *encoding = request_header(request, "Content-Encoding");
    uint64_t cap = route->body == ROUTE_NO_BODY ? DISCARD_MOST : route->body_cap;

    if (request->content_length > cap)
        return 413;
    if (route->body != ROUTE_JSON || !has_body)
        return 0;
    if (!http_is_type(request_header(request, "Content-Type"), "application/json"))
        return 415;
    return encoding == NULL || strcasecmp(encoding, "identity") == 0 ? 0 : 415;
}

static void answer_allow(struct request *request)
{
    char allow[ROUTER_ALLOW_SIZE];

    router_allow_text(request->match.allow, allow);
    ignore_result(request_set_header(request, "Allow", allow)); /* without memory the status says enough */
    if (request->match.verdict == ROUTER_OPTIONS)
        request_answer(request, 204, NULL, NULL, 0);
    else
        request_refuse(request, 405, NULL, "this path does not take that method");
}

static void say_continue(struct connection *connection)
{
    static char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
    uv_buf_t buf = {.base = text, .len = sizeof text - 1};

    connection->request->expects_continue = false;
    if (stream_write(&connection->stream, &buf, 1) < 0)
        connection_end(connection);
}

static void begin_body(struct connection *connection)
{
    struct request *request = connection->request;

    connection_set_phase(connection, PHASE_BODY, connection_limits(connection)->body_silence_ms);
    request->body = buf_init(request->route->body_cap);
    connection->body_ms = connection_now(connection);
    if (request->expects_continue)
        say_continue(connection);
    if (connection->phase == PHASE_CLOSED || request->route->body != ROUTE_STREAM)
        return;
    request->is_handed = true;
    request->route->handle(request);
}

void exchange_admit(struct connection *connection)
{
    struct request *request = connection->request;

    request->is_handed = false;
    if (request->match.verdict == ROUTER_NO_PATH) {
        request_refuse(request, 404, NULL, "there is nothing at this path");
        return;
    }
    if (request->match.verdict != ROUTER_FOUND) {
        answer_allow(request);
        return;
    }
    unsigned status = check_body(request);
    if (status == 413)
        request_refuse(request, 413, NULL, "the body is too large");
    else if (status != 0)
        request_refuse(request, status, NULL, "the body has to be application/json");
    else
        begin_body(connection);
}

/* 0, -ENOBUFS when it is too large, -ENOMEM when all of them together are. */
static int collect(struct request *request, const uint8_t *data, size_t length)
{
    struct server *server = request->connection->server;
    uint64_t cap = request->route->body == ROUTE_NO_BODY ? DISCARD_MOST : request->route->body_cap;

    if (request->body_received > cap)
        return -ENOBUFS;
    if (request->route->body == ROUTE_NO_BODY)
        return 0;
    if (length > server->options.limits.bodies_bytes - server->bodies_bytes)
        return -ENOMEM;
    int r = buf_append(&request->body, data, length);
    if (r == 0)
        server->bodies_bytes += length;
    return r;
}

static void on_body(struct connection *connection, const uint8_t *data, size_t length)
{
    struct request *request = connection->request;

    if (connection->phase == PHASE_DISCARD) {
        if (length > connection->discard_left)
            connection_linger(connection);
        else
            connection->discard_left -= length;
        return;
    }
    request->body_received += length;
    connection->deadline_ms = connection_now(connection) + connection_limits(connection)->body_silence_ms;
    if (request->route->body != ROUTE_STREAM) {
        int r = collect(request, data, length);
        if (r == -ENOBUFS)
            request_refuse(request, 413, NULL, "the body is too large");
        else if (r < 0)
            request_refuse(request, 503, NULL, "there is no memory for the body");
    } else if (request->body_received > request->route->body_cap) {
        connection_fail(connection, 413, "the body is too large");
    } else if (request->events != NULL && request->events->body != NULL) {
        request->events->body(request, data, length);
    }
}

static void on_end(struct connection *connection)
{
    struct request *request = connection->request;

    if (connection->phase == PHASE_DISCARD) {
        connection_make_idle(connection);
        return;
    }
    connection_set_phase(connection, PHASE_HANDLER, 0);
    if (request->route->body != ROUTE_STREAM) {
        request->is_handed = true;
        request->route->handle(request);
    } else if (request->events != NULL && request->events->body != NULL) {
        request->events->body(request, NULL, 0);
    }
    /* The end may have come before: then it was kept for now. */
    if (connection->phase == PHASE_HANDLER && connection->has_eof)
        request_tell_gone(connection->request);
}

void exchange_event(struct connection *connection, const struct http1_event *event)
{
    switch (event->type) {
    case HTTP1_HEAD:
        begin_request(connection);
        break;
    case HTTP1_BODY:
        on_body(connection, event->data, event->length);
        break;
    case HTTP1_END:
        on_end(connection);
        break;
    case HTTP1_BAD:
        connection->server->counts.requests_bad++;
        if (connection->phase == PHASE_DISCARD)
            connection_linger(connection);
        else
            connection_fail(connection, event->status, event->reason);
        break;
    case HTTP1_MORE:
        if (connection->phase == PHASE_IDLE && !http1_is_idle(&connection->http1))
            connection_set_phase(connection, PHASE_HEAD, connection_limits(connection)->headers_ms);
        break;
    }
}
