#include "gateway/net/serving.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>

enum { BACKLOG = 4096, ID_BYTES = 16 };

struct server_limits server_limits_default(void)
{
    return (struct server_limits){
        .connections_max = 10000,
        .request_line_bytes = 8 << 10,
        .headers_bytes = 32 << 10,
        .arena_bytes = 256 << 10,
        .unsent_low_bytes = 256 << 10,
        .unsent_cap_bytes = 4 << 20,
        .bodies_bytes = 128 << 20,
        .pending_bytes = 64 << 10,
        .headers_ms = 10000,
        .body_silence_ms = 30000,
        .body_bytes_per_s = 512,
        .idle_ms = 75000,
        .write_stall_ms = 30000,
        .linger_ms = 2000,
        .tick_ms = 250,
    };
}

#define DEFAULT(field)                                                                                                 \
    if (limits->field == 0)                                                                                            \
    limits->field = defaults.field

static void fill_in(struct server_limits *limits)
{
    struct server_limits defaults = server_limits_default();

    DEFAULT(connections_max);
    DEFAULT(request_line_bytes);
    DEFAULT(headers_bytes);
    DEFAULT(arena_bytes);
    DEFAULT(unsent_low_bytes);
    DEFAULT(unsent_cap_bytes);
    DEFAULT(bodies_bytes);
    DEFAULT(pending_bytes);
    DEFAULT(headers_ms);
    DEFAULT(body_silence_ms);
    DEFAULT(body_bytes_per_s);
    DEFAULT(idle_ms);
    DEFAULT(write_stall_ms);
    DEFAULT(linger_ms);
    DEFAULT(tick_ms);
}

static void update_date(struct server *server)
{
    head_date((int64_t)time(NULL), server->date);
}

static void end_all(struct server *server)
{
    struct connection *connection = TAILQ_FIRST(&server->connections);

    /* One stays in the list until its stream is closed, which does not happen in here. */
    for (; connection != NULL; connection = TAILQ_NEXT(connection, all))
        connection_end(connection);
}

static void retry_waiting(struct server *server)
{
    struct listener *listener;

    LIST_FOREACH(listener, &server->listeners, all)
    {
        if (listener->has_waiting)
            connection_accept(listener);
    }
}

static void on_tick(uv_timer_t *timer)
{
    struct server *server = timer->data;
    uint64_t now_ms = uv_now(timer->loop);
    struct connection *connection = TAILQ_FIRST(&server->connections);

    update_date(server);
    retry_waiting(server);
    if (server->is_stopping && now_ms >= server->stop_ms)
        end_all(server);
    for (; connection != NULL; connection = TAILQ_NEXT(connection, all))
        connection_tick(connection, now_ms);
}

/* Each that waits has one turn; who has input left after it waits for the next round. */
static void on_turn(uv_idle_t *idle)
{
    struct server *server = idle->data;
    struct connection *last = TAILQ_LAST(&server->ready, ready_list);
    struct connection *connection = NULL;

    while (connection != last && (connection = TAILQ_FIRST(&server->ready)) != NULL) {
        server_remove_ready(server, connection);
        connection_continue(connection);
    }
    if (TAILQ_EMPTY(&server->ready))
        ignore_result(uv_idle_stop(idle));
}

/* uv writes with plain writev(): a client that has gone must not end the gateway. */
static void ignore_pipe_signal(void)
{
    struct sigaction action = {.sa_handler = SIG_IGN};

    ignore_result(sigaction(SIGPIPE, &action, NULL)); /* fails for other signals only */
}

void server_add_ready(struct server *server, struct connection *connection)
{
    if (connection->is_ready)
        return;
    connection->is_ready = true;
    TAILQ_INSERT_TAIL(&server->ready, connection, ready);
    ignore_result(uv_idle_start(&server->turn, on_turn)); /* fails without a callback only */
}

void server_remove_ready(struct server *server, struct connection *connection)
{
    if (!connection->is_ready)
        return;
    connection->is_ready = false;
    TAILQ_REMOVE(&server->ready, connection, ready);
}

static int open_handles(struct server *server)
{
    uint64_t tick_ms = server->options.limits.tick_ms;
    int r = uv_timer_init(server->options.loop, &server->tick);

    if (r == 0)
        r = uv_idle_init(server->options.loop, &server->turn);
    if (r < 0)
        return r;
    server->tick.data = server;
    server->turn.data = server;
    server->handles = OWN_HANDLES;
    ignore_result(uv_timer_start(&server->tick, on_tick, tick_ms, tick_ms)); /* fails without a callback only */
    uv_unref((uv_handle_t *)&server->tick);
    return 0;
}

int server_new(const struct server_options *options, struct server **ret_server, struct error *err)
{
    struct server *server = calloc(1, sizeof *server);

    if (server == NULL)
        return error_set(err, ERROR_SYSTEM, ENOMEM, "making the server");
    ignore_pipe_signal();
    server->options = *options;
    server->scratch = buf_init(SCRATCH_MOST);
    fill_in(&server->options.limits);
    TAILQ_INIT(&server->connections);
    TAILQ_INIT(&server->idle);
    TAILQ_INIT(&server->ready);
    LIST_INIT(&server->listeners);
    update_date(server);
    int r = open_handles(server);
    if (r < 0) {
        free(server);
        return error_set(err, ERROR_SYSTEM, -r, "making the server");
    }
    *ret_server = server;
    return 0;
}

static void on_connection(uv_stream_t *stream, int status)
{
    if (status == 0)
        connection_accept(stream->data);
}

static int open_listener(struct listener *listener, uv_loop_t *loop, int *fd)
{
    int domain = 0;
    socklen_t length = sizeof domain;
    int r;

    if (getsockopt(*fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) < 0)
        return -errno;
    if (domain != AF_INET && domain != AF_INET6 && domain != AF_UNIX)
        return -EAFNOSUPPORT;
    if (domain == AF_UNIX)
        r = uv_pipe_init(loop, &listener->uv.pipe, 0);
    else
        r = uv_tcp_init(loop, &listener->uv.tcp);
    if (r < 0)
        return r;
    r = domain == AF_UNIX ? uv_pipe_open(&listener->uv.pipe, *fd) : uv_tcp_open(&listener->uv.tcp, *fd);
    if (r == 0)
        *fd = -1; /* the handle's */
    return r == 0 ? uv_listen(&listener->uv.stream, BACKLOG, on_connection) : r;
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct listener *listener = handle->data;
    struct server *server = listener->server;

    free(listener);
    server->handles--;
    server_check_stopped(server);
}

static void close_listener(struct listener *listener)
{
    uv_close(&listener->uv.handle, on_handle_closed);
}

int server_listen(struct server *server, int fd, struct tls_context *tls, struct error *err)
{
    struct listener *listener = calloc(1, sizeof *listener);
    int r = listener == NULL ? -ENOMEM : open_listener(listener, server->options.loop, &fd);

    if (fd >= 0)
        (void)close(fd);
    if (r < 0 && (listener == NULL || listener->uv.handle.type == UV_UNKNOWN_HANDLE)) {
        free(listener);
        return error_set(err, ERROR_SYSTEM, -r, "listening");
    }
    listener->uv.handle.data = listener;
    listener->server = server;
    listener->tls = tls;
    server->handles++;
    if (r < 0) {
        close_listener(listener);
        return error_set(err, ERROR_SYSTEM, -r, "listening");
    }
    LIST_INSERT_HEAD(&server->listeners, listener, all);
    return 0;
}

void server_replace_tls(struct server *server, const struct tls_context *old, struct tls_context *fresh)
{
    struct listener *listener;

    LIST_FOREACH(listener, &server->listeners, all)
    {
        if (listener->tls == old && old != NULL)
            listener->tls = fresh;
    }
}

static void on_own_closed(uv_handle_t *handle)
{
    struct server *server = handle->data;

    server->handles--;
    server_check_stopped(server);
}

void server_stop(struct server *server, uint64_t deadline_ms, void (*stopped)(struct server *server, void *user),
                 void *user)
{
    struct listener *listener;
    struct connection *connection = TAILQ_FIRST(&server->connections);

    server->stop_ms = uv_now(server->options.loop) + deadline_ms;
    if (server->is_stopping)
        return;
    server->is_stopping = true;
    server->stopped = stopped;
    server->stopped_user = user;
    while ((listener = LIST_FIRST(&server->listeners)) != NULL) {
        LIST_REMOVE(listener, all);
        close_listener(listener);
    }
    for (; connection != NULL; connection = TAILQ_NEXT(connection, all))
        connection_stop(connection);
    server_check_stopped(server);
}

static void close_own_handles(struct server *server, uv_close_cb closed)
{
    uv_close((uv_handle_t *)&server->tick, closed);
    uv_close((uv_handle_t *)&server->turn, closed);
}

/* The server's own go last: until then the timer holds the deadline. */
void server_check_stopped(struct server *server)
{
    if (!server->is_stopping || server->counts.requests > 0 || server->handles > OWN_HANDLES)
        return;
    if (server->handles == OWN_HANDLES && !uv_is_closing((uv_handle_t *)&server->tick)) {
        close_own_handles(server, on_own_closed);
    } else if (server->handles == 0 && !server->is_stopped) {
        server->is_stopped = true;
        if (server->stopped != NULL)
            server->stopped(server, server->stopped_user);
    }
}

static void on_unused_closed(uv_handle_t *handle)
{
    struct server *server = handle->data;

    if (--server->handles > 0)
        return;
    buf_release(&server->scratch);
    free(server);
}

void server_free(struct server *server)
{
    if (server == NULL)
        return;
    if (!server->is_stopped) {
        /* It never listened: its own handles are all there is. */
        close_own_handles(server, on_unused_closed);
        return;
    }
    buf_release(&server->scratch);
    free(server);
}

struct server_counts server_counts(const struct server *server)
{
    struct server_counts counts = server->counts;

    counts.bytes_in = server->shared.bytes_in;
    counts.bytes_out = server->shared.bytes_out;
    counts.tls_failed = server->shared.tls_failed;
    return counts;
}

void server_make_id(struct server *server, char id[REQUEST_ID_MAX + 1])
{
    static const char digits[] = "0123456789abcdef";

    if (server->random_left < ID_BYTES) {
        /* Up to 256 bytes it is never short and never fails once the machine has started. */
        ignore_result(getrandom(server->random, sizeof server->random / 2, 0));
        ignore_result(getrandom(server->random + sizeof server->random / 2, sizeof server->random / 2, 0));
        server->random_left = sizeof server->random;
    }
    for (size_t i = 0; i < ID_BYTES; i++) {
        uint8_t byte = server->random[--server->random_left];
        id[2 * i] = digits[byte >> 4];
        id[2 * i + 1] = digits[byte & 15];
    }
    id[(size_t)2 * ID_BYTES] = '\0';
}
