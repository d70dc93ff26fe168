/*
 * serve: a real server on a loop of its own thread, for tests with real sockets, and a blocking client.
 */
#pragma once

#include "base/cleanup.h"
#include "gateway/net/meter.h"
#include "gateway/net/server.h"
#include "gateway/net/sse.h"
#include "test.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/un.h>
#include <unistd.h>

enum { SERVE_PATIENCE_S = 20, SERVE_TEXT = 1 << 16 };

struct serve {
    uv_loop_t loop;
    uv_async_t stop;
    uv_async_t count;
    uv_sem_t counted;
    struct server_counts seen; /* by serve_counts() */
    struct meter meter;
    struct server *server;
    struct router *router;
    struct server_limits limits;
    struct tls_context *tls;
    pthread_t thread;
    int port;
    char path[64]; /* of the unix socket; abstract */
    uint64_t stop_within_ms;
    struct server_counts counts; /* after the stop */
    bool refuses_late;           /* as a server that records its refusals first */
    _Atomic int refused;         /* late */
    _Atomic int gone;            /* requests whose client went */
    _Atomic int ended;           /* requests that were ended */
    _Atomic int handled;
    _Atomic int pauses;
    _Atomic int waits;
    _Atomic int failed; /* writes */
    _Atomic int most_unsent;
    _Atomic int done;         /* requests of which `done` told */
    _Atomic int done_unheard; /* and whose client went before it was answered */
};

static inline struct serve *serve_of(const struct request *request)
{
    return request->context;
}

/* --- the server's end --- */

static inline void serve_hello(struct request *request)
{
    serve_of(request)->handled++;
    request_answer(request, 200, "text/plain", "hello", 5);
}

/* All of it at once. */
static inline void serve_page(struct request *request)
{
    static char page[100000];

    serve_of(request)->handled++;
    request_answer(request, 200, "text/plain", page, sizeof page);
}

static inline void serve_echo(struct request *request)
{
    serve_of(request)->handled++;
    request_answer(request, 200, "application/json", request->body.data, request->body.length);
}

/* Who asks for what, as the server sees it. */
static inline void serve_who(struct request *request)
{
    const char *path = request_parameter(request, "path");
    const char *query = request_query(request, "q");
    char *text = arena_printf(&request->arena, "%s|%s|%s|%s|%s|%d|%d|%s", http_method_name(request->method),
                              request->host, path != NULL ? path : "-", query != NULL ? query : "-",
                              request->peer->address, request->peer->kind == PEER_UNIX ? (int)request->peer->uid : -1,
                              request->peer->kind == PEER_UNIX ? (int)request->peer->pid : -1,
                              request->peer->is_tls ? "tls" : "plain");

    assert_int_equal(request_set_header(request, "X-Odd", "a\r\nb"), -EINVAL);
    assert_int_equal(request_set_header(request, "Content-Length", "1"), -EINVAL);
    assert_int_equal(request_set_header(request, "cache-control", "max-age=1"), 0);
    assert_int_equal(request_set_header(request, "X-Frame-Options", NULL), 0);
    request_answer(request, 200, "text/plain", text, strlen(text));
}

static inline void serve_on_timer_closed(uv_handle_t *handle)
{
    free(handle);
}

static inline void serve_after(struct request *request, uint64_t ms, uv_timer_cb then)
{
    uv_timer_t *timer = malloc(sizeof *timer);

    assert_non_null(timer);
    assert_int_equal(uv_timer_init(&serve_of(request)->loop, timer), 0);
    timer->data = request;
    assert_int_equal(uv_timer_start(timer, then, ms, 0), 0);
}

static inline struct request *serve_timer_ends(uv_timer_t *timer)
{
    struct request *request = timer->data;

    uv_close((uv_handle_t *)timer, serve_on_timer_closed);
    return request;
}

static inline void serve_count_gone(struct request *request)
{
    serve_of(request)->gone++;
}

static const struct request_events serve_counting = {.gone = serve_count_gone};

static inline void serve_answer_late(uv_timer_t *timer)
{
    struct request *request = serve_timer_ends(timer);

    serve_of(request)->ended++;
    request_answer(request, 200, "text/plain", "late", 4);
}

/* Answers after a while, whatever happens meanwhile. */
static inline void serve_later(struct request *request)
{
    serve_of(request)->handled++;
    request->events = &serve_counting;
    serve_after(request, 150, serve_answer_late);
}

static inline void serve_end_gone(struct request *request)
{
    serve_of(request)->gone++;
    serve_of(request)->ended++;
    request_finish(request);
}

static const struct request_events serve_hanging = {.gone = serve_end_gone};

/* Answers never: ends when the client does. */
static inline void serve_hang(struct request *request)
{
    serve_of(request)->handled++;
    request->events = &serve_hanging;
}

/* `n` bytes in pieces of 10,000, as fast as the client takes them. */
static inline void serve_more(struct request *request)
{
    static char piece[10000];
    uint64_t left = (uint64_t)(uintptr_t)request->user;
    int r = 1;

    memset(piece, 'x', sizeof piece);
    while (left > 0 && r > 0) {
        size_t n = left < sizeof piece ? (size_t)left : sizeof piece;
        r = request_write(request, piece, n);
        left -= n;
    }
    request->user = (void *)(uintptr_t)left;
    if ((int)request_unsent(request) > serve_of(request)->most_unsent)
        serve_of(request)->most_unsent = (int)request_unsent(request);
    if (r == 0)
        serve_of(request)->waits++;
    serve_of(request)->failed += r < 0;
    if (r < 0 || left == 0)
        request_finish(request);
}

static const struct request_events serve_sending = {.drain = serve_more, .gone = serve_end_gone};

static inline void serve_big(struct request *request)
{
    const char *n = request_query(request, "n");
    const char *length = request_query(request, "length");
    uint64_t bytes = n != NULL ? strtoull(n, NULL, 10) : 0;

    serve_of(request)->handled++;
    request->events = &serve_sending;
    request->user = (void *)(uintptr_t)bytes;
    request_start(request, 200, "text/plain", length != NULL ? (int64_t)bytes : REQUEST_LENGTH_UNKNOWN);
    serve_more(request);
}

/* More than anybody could take. */
static inline void serve_flood(struct request *request)
{
    static char piece[65536];
    int r = 1;

    request_start(request, 200, "text/plain", REQUEST_LENGTH_UNKNOWN);
    while (r >= 0)
        r = request_write(request, piece, sizeof piece);
    serve_of(request)->ended++;
    assert_int_equal(r, -ENOBUFS);
    request_finish(request);
}

static inline void serve_sse(struct request *request)
{
    serve_of(request)->handled++;
    request->events = &serve_hanging;
    sse_start(request);
    assert_int_equal(sse_event(request, "stdout", "7", "one\ntwo\n", 8), 1);
    assert_int_equal(sse_heartbeat(request), 1);
    assert_int_equal(sse_event(request, "a\nb", NULL, "", 0), -EINVAL);
}

static inline void serve_take_again(uv_timer_t *timer)
{
    request_resume(serve_timer_ends(timer));
}

/* Counts the body; every now and then it has had enough for a moment. */
static inline void serve_take(struct request *request, const void *data, size_t length)
{
    uint64_t total = (uint64_t)(uintptr_t)request->user + length;
    char text[32];

    (void)data;
    assert_false(request->is_paused);
    request->user = (void *)(uintptr_t)total;
    if (length == 0) {
        (void)snprintf(text, sizeof text, "%llu", (unsigned long long)total);
        serve_of(request)->ended++;
        request_answer(request, 200, "text/plain", text, strlen(text));
        return;
    }
    if (serve_of(request)->pauses++ % 8 == 0) {
        request_pause(request);
        serve_after(request, 1, serve_take_again);
    }
}

/* A timer may still hold it: only the test's end frees such a request. */
static inline void serve_take_gone(struct request *request)
{
    serve_of(request)->gone++;
    if (!request->is_paused) {
        serve_of(request)->ended++;
        request_finish(request);
    }
}

static const struct request_events serve_taking = {.body = serve_take, .gone = serve_take_gone};

static inline void serve_stream(struct request *request)
{
    serve_of(request)->handled++;
    request->events = &serve_taking;
}

static inline void serve_take_slowly(struct request *request, const void *data, size_t length)
{
    (void)data;
    if (length == 0) {
        request_answer(request, 200, "text/plain", "slow", 4);
        return;
    }
    request_pause(request);
    serve_after(request, 600, serve_take_again);
}

static const struct request_events serve_taking_slowly = {.body = serve_take_slowly, .gone = serve_count_gone};

static inline void serve_slow(struct request *request)
{
    request->events = &serve_taking_slowly;
}

/* Promises ten bytes. */
static inline void serve_promise(struct request *request)
{
    const char *n = request_query(request, "n");
    int r = 1;

    request_start(request, 200, "text/plain", 10);
    for (uint64_t left = strtoull(n != NULL ? n : "0", NULL, 10); left > 0 && r > 0; left--)
        r = request_write(request, "x", 1);
    serve_of(request)->handled += r < 0 ? 100 : 1;
    request_finish(request);
}

static inline void serve_proceed(uv_timer_t *timer)
{
    request_proceed(serve_timer_ends(timer));
}

static inline enum before serve_before(struct request *request)
{
    if (request_header(request, "X-Deny") != NULL) {
        request_refuse(request, 401, "auth_required", "no");
        return BEFORE_ANSWERED;
    }
    if (request_header(request, "X-Wait") != NULL) {
        serve_after(request, 20, serve_proceed);
        return BEFORE_LATER;
    }
    return BEFORE_GO_ON;
}

static inline void serve_refuse_now(uv_timer_t *timer)
{
    struct request *request = serve_timer_ends(timer);

    request_answer(request, (unsigned)(uintptr_t)request->user, "text/plain", "no", 2);
}

/* As one does that has to write it down first. */
static inline void serve_refuse_late(struct request *request, unsigned status, const char *code, const char *message)
{
    (void)code;
    (void)message;
    serve_of(request)->refused++;
    request->user = (void *)(uintptr_t)status;
    serve_after(request, 50, serve_refuse_now);
}

static inline void serve_done(const struct request *request, unsigned status, uint64_t sent, uint64_t duration_ns)
{
    (void)sent;
    serve_of(request)->done++;
    serve_of(request)->done_unheard += status == 0;
    assert_true(duration_ns > 0);
}

static const struct route serve_routes[] = {
    {.method = METHOD_GET, .pattern = "/hello", .handle = serve_hello},
    {.method = METHOD_POST, .pattern = "/hello", .handle = serve_hello},
    {.method = METHOD_GET, .pattern = "/page", .handle = serve_page},
    {.method = METHOD_POST, .pattern = "/echo", .body = ROUTE_JSON, .body_cap = 1 << 20, .handle = serve_echo},
    {.method = METHOD_PUT, .pattern = "/bytes", .body = ROUTE_BYTES, .body_cap = 100000, .handle = serve_echo},
    {.method = METHOD_PUT, .pattern = "/stream", .body = ROUTE_STREAM, .body_cap = 64 << 20, .handle = serve_stream},
    {.method = METHOD_PUT, .pattern = "/early", .body = ROUTE_STREAM, .body_cap = 64 << 20, .handle = serve_hello},
    {.method = METHOD_PUT, .pattern = "/slow", .body = ROUTE_STREAM, .body_cap = 64 << 20, .handle = serve_slow},
    {.method = METHOD_PUT, .pattern = "/few", .body = ROUTE_STREAM, .body_cap = 10, .handle = serve_stream},
    {.method = METHOD_GET, .pattern = "/promise", .handle = serve_promise},
    {.method = METHOD_GET, .pattern = "/who/{path}", .handle = serve_who},
    {.method = METHOD_GET, .pattern = "/later", .handle = serve_later},
    {.method = METHOD_GET, .pattern = "/hang", .handle = serve_hang},
    {.method = METHOD_GET, .pattern = "/big", .handle = serve_big},
    {.method = METHOD_GET, .pattern = "/flood", .handle = serve_flood},
    {.method = METHOD_GET, .pattern = "/sse", .handle = serve_sse},
};

static inline int serve_listen_tcp(struct serve *serve)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_return_code(fd, errno);
    assert_return_code(bind(fd, (struct sockaddr *)&address, sizeof address), errno);
    assert_return_code(listen(fd, 128), errno);
    assert_return_code(getsockname(fd, (struct sockaddr *)&address, &length), errno);
    serve->port = ntohs(address.sin_port);
    return fd;
}

static inline socklen_t serve_unix_address(const struct serve *serve, struct sockaddr_un *ret_address)
{
    *ret_address = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(ret_address->sun_path + 1, serve->path, strlen(serve->path));
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(serve->path));
}

static inline int serve_listen_unix(struct serve *serve)
{
    struct sockaddr_un address;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)snprintf(serve->path, sizeof serve->path, "hutch-test-serve-%d-%d", (int)getpid(), serve->port);
    socklen_t length = serve_unix_address(serve, &address);
    assert_return_code(fd, errno);
    assert_return_code(bind(fd, (struct sockaddr *)&address, length), errno);
    assert_return_code(listen(fd, 128), errno);
    return fd;
}

static inline void serve_stopped(struct server *server, void *user)
{
    struct serve *serve = user;

    serve->counts = server_counts(server);
    server_free(server);
    meter_stop(&serve->meter);
    uv_close((uv_handle_t *)&serve->stop, NULL);
    uv_close((uv_handle_t *)&serve->count, NULL);
}

static inline void serve_on_count(uv_async_t *async)
{
    struct serve *serve = async->data;

    serve->seen = server_counts(serve->server);
    uv_sem_post(&serve->counted);
}

/* What it counts now. The server is its own thread's: that one looks. */
static inline struct server_counts serve_counts(struct serve *serve)
{
    assert_int_equal(uv_async_send(&serve->count), 0);
    uv_sem_wait(&serve->counted);
    return serve->seen;
}

static inline void serve_on_stop(uv_async_t *async)
{
    struct serve *serve = async->data;

    server_stop(serve->server, serve->stop_within_ms, serve_stopped, serve);
}

static inline void *serve_run(void *argument)
{
    struct serve *serve = argument;

    assert_int_equal(uv_run(&serve->loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&serve->loop), 0);
    return NULL;
}

/* Set limits and tls before. */
static inline void serve_start(struct serve *serve)
{
    const struct route *tables[] = {serve_routes};
    const size_t counts[] = {COUNT(serve_routes)};
    struct error err = {0};

    assert_int_equal(uv_loop_init(&serve->loop), 0);
    assert_int_equal(meter_start(&serve->meter, &serve->loop, &err), 0);
    assert_int_equal(router_new(tables, counts, 1, &serve->router, &err), 0);
    struct server_options options = {.loop = &serve->loop,
                                     .router = serve->router,
                                     .limits = serve->limits,
                                     .context = serve,
                                     .before = serve_before,
                                     .refuse = serve->refuses_late ? serve_refuse_late : NULL,
                                     .done = serve_done};
    assert_int_equal(server_new(&options, &serve->server, &err), 0);
    assert_int_equal(server_listen(serve->server, serve_listen_tcp(serve), serve->tls, &err), 0);
    assert_int_equal(server_listen(serve->server, serve_listen_unix(serve), NULL, &err), 0);
    assert_int_equal(uv_async_init(&serve->loop, &serve->stop, serve_on_stop), 0);
    serve->stop.data = serve;
    assert_int_equal(uv_async_init(&serve->loop, &serve->count, serve_on_count), 0);
    serve->count.data = serve;
    assert_int_equal(uv_sem_init(&serve->counted, 0), 0);
    assert_int_equal(pthread_create(&serve->thread, NULL, serve_run, serve), 0);
}

static inline void serve_end(struct serve *serve)
{
    assert_int_equal(uv_async_send(&serve->stop), 0);
    assert_int_equal(pthread_join(serve->thread, NULL), 0);
    uv_sem_destroy(&serve->counted);
    router_free(serve->router);
    assert_int_equal(serve->counts.connections, 0);
    assert_int_equal(serve->counts.requests, 0);
    assert_int_equal(serve->counts.requests_total, serve->done);
}

/* Until it is true, or the test fails. */
#define serve_eventually(condition)                                                                                    \
    do {                                                                                                               \
        for (int tries_ = 0; tries_ < SERVE_PATIENCE_S * 200 && !(condition); tries_++)                                \
            (void)usleep(5000);                                                                                        \
        assert_true(condition);                                                                                        \
    } while (0)

/* --- the client's end --- */

static inline void serve_be_patient(int fd)
{
    struct timeval patience = {.tv_sec = SERVE_PATIENCE_S};

    assert_return_code(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), errno);
    assert_return_code(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience), errno);
}

static inline int serve_dial(const struct serve *serve)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)serve->port)};
    int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_return_code(fd, errno);
    serve_be_patient(fd);
    assert_return_code(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), errno);
    assert_return_code(connect(fd, (struct sockaddr *)&address, sizeof address), errno);
    return fd;
}

static inline void serve_send_bytes(int fd, const char *data, size_t length)
{
    while (length > 0) {
        ssize_t n = send(fd, data, length, MSG_NOSIGNAL);
        assert_true(n > 0);
        data += n;
        length -= (size_t)n;
    }
}

static inline void serve_send(int fd, const char *text)
{
    serve_send_bytes(fd, text, strlen(text));
}

/* Everything until the server closes; "RESET" is appended when it did not do so in an orderly way. */
static inline char *serve_read_all(int fd, char text[SERVE_TEXT])
{
    size_t length = 0;
    ssize_t n;

    while ((n = recv(fd, text + length, SERVE_TEXT - 16 - length, 0)) > 0)
        length += (size_t)n;
    text[length] = '\0';
    if (n < 0) {
        assert_int_equal(errno, ECONNRESET);
        (void)stpcpy(text + length, "RESET");
    }
    return text;
}

/* One answer with a Content-Length, or the head alone. */
static inline char *serve_read_answer(int fd, char text[SERVE_TEXT])
{
    size_t length = 0;
    size_t wanted = SIZE_MAX;

    text[0] = '\0';
    while (length < wanted) {
        /* One byte at a time up to the body: nothing of the next answer may be taken. */
        size_t most = wanted == SIZE_MAX ? 1 : wanted - length;
        ssize_t n = recv(fd, text + length, most, 0);
        assert_true(n > 0);
        length += (size_t)n;
        text[length] = '\0';
        if (wanted == SIZE_MAX && length >= 4 && strcmp(text + length - 4, "\r\n\r\n") == 0) {
            const char *header = strstr(text, "Content-Length: ");
            wanted = length + (header != NULL ? strtoul(header + 16, NULL, 10) : 0);
        }
    }
    return text;
}

/* Send, read until the end. */
static inline char *serve_ask(const struct serve *serve, const char *input, char text[SERVE_TEXT])
{
    int fd = serve_dial(serve);

    serve_send(fd, input);
    (void)serve_read_all(fd, text);
    (void)close(fd);
    return text;
}

static inline bool serve_starts(const char *text, const char *front)
{
    return strncmp(text, front, strlen(front)) == 0;
}

static inline bool serve_ends(const char *text, const char *back)
{
    return strlen(text) >= strlen(back) && strcmp(text + strlen(text) - strlen(back), back) == 0;
}

#define assert_starts(text, front)                                                                                     \
    do {                                                                                                               \
        if (!serve_starts((text), (front)))                                                                            \
            fail_msg("does not start with %s: %s", (front), (text));                                                   \
    } while (0)
#define assert_ends(text, back)                                                                                        \
    do {                                                                                                               \
        if (!serve_ends((text), (back)))                                                                               \
            fail_msg("does not end in %s: %s", (back), (text));                                                        \
    } while (0)
#define assert_has(text, part)                                                                                         \
    do {                                                                                                               \
        if (strstr((text), (part)) == NULL)                                                                            \
            fail_msg("has no %s: %s", (part), (text));                                                                 \
    } while (0)
