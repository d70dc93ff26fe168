/*
 * Theory of operation. Both sockets are polled for what the connection waits for at the moment, and every event ends in
 * pump(): what came from the client goes through the guard (look.c), or straight on once that has nothing more to look
 * at; what came from the server goes to the client as it is. The server is dialled while the client's first bytes are
 * already looked at, because with many protocols the server speaks first.
 */
#include "airlock/connection.h"

#include "base/cleanup.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
    PIECE_BYTES = 16384,
    IDLE_DNS_MS = 10000,
    KEEPALIVE_IDLE_S = 60,
    KEEPALIVE_EACH_S = 20,
    KEEPALIVE_TIMES = 3,
    CLOSING_MS = 60000, /* for a client to hear that its server has gone */
};

static void pump(struct connection *connection);
static void on_poll(uv_poll_t *poll, int status, int events);

static void on_closed(uv_handle_t *handle)
{
    struct connection *connection = handle->data;

    if (--connection->handles > 0)
        return;
    struct sandbox *sandbox = connection->sandbox;
    free(connection);
    sandbox_drop(sandbox);
}

static void count_bytes(struct connection *connection)
{
    uint64_t bytes = connection->up.bytes + connection->down.bytes;

    connection->sandbox->bytes += bytes - connection->counted;
    connection->counted = bytes;
}

static void tell_end(struct connection *connection)
{
    struct decision decision = {.kind = WIRE_DECISION_END,
                                .verdict = WIRE_VERDICT_ALLOWED,
                                .name = connection->goal.name,
                                .port = connection->goal.port,
                                .rule = "",
                                .why = connection->why,
                                .sent_bytes = connection->up.bytes,
                                .received_bytes = connection->down.bytes};

    decision_tell(connection->sandbox, &decision);
}

static void close_side(struct connection *connection, size_t side, bool reset)
{
    struct linger at_once = {.l_onoff = 1};

    if (connection->has_poll[side]) {
        connection->has_poll[side] = false;
        (void)uv_poll_stop(&connection->polls[side]);
        uv_close((uv_handle_t *)&connection->polls[side], on_closed);
    }
    if (reset && connection->fds[side] >= 0)
        (void)setsockopt(connection->fds[side], SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close_fd(&connection->fds[side]);
}

void connection_leave_server(struct connection *connection)
{
    resolver_forget(connection->resolution);
    connection->resolution = NULL;
    dial_cancel(connection->dial);
    connection->dial = NULL;
    close_side(connection, SERVER, true);
}

static void release_parts(struct connection *connection)
{
    flow_release(&connection->up);
    flow_release(&connection->down);
    buf_release(&connection->held);
    guard_release(&connection->guard);
    if (connection->proxy != NULL)
        proxy_release(connection->proxy);
    free(connection->proxy);
    connection->proxy = NULL;
}

void connection_end(struct connection *connection, bool reset)
{
    struct sandbox *sandbox = connection->sandbox;

    if (connection->state == CONNECTION_ENDED)
        return;
    connection->state = CONNECTION_ENDED;
    count_bytes(connection);
    if (connection->is_allowed)
        tell_end(connection);
    if (connection->is_holding)
        names_drop(sandbox->names, connection->number, sandbox_now_ns(sandbox));
    question_forget(connection->question);
    close_side(connection, CLIENT, reset);
    close_side(connection, SERVER, reset);
    connection_leave_server(connection);
    release_parts(connection);
    *connection->link = connection->next;
    if (connection->next != NULL)
        connection->next->link = connection->link;
    sandbox->connection_count--;
    uv_close((uv_handle_t *)&connection->timer, on_closed);
}

void connection_set_timer(struct connection *connection, uint64_t ms, uv_timer_cb callback)
{
    if (connection->state != CONNECTION_ENDED)
        (void)uv_timer_start(&connection->timer, callback, ms, 0);
}

void connection_expired(uv_timer_t *timer)
{
    struct connection *connection = timer->data;

    if (connection->state == CONNECTION_RELAYING && connection->fds[SERVER] < 0)
        connection_tell(connection, WIRE_VERDICT_FAILED, "", "the server took too long");
    if (connection->why[0] == '\0')
        (void)snprintf(connection->why, sizeof connection->why, "it took too long");
    connection_end(connection, true);
}

static void want(struct connection *connection, size_t side, int events)
{
    if (!connection->has_poll[side] || connection->events[side] == events)
        return;
    connection->events[side] = events;
    if (events == 0)
        (void)uv_poll_stop(&connection->polls[side]);
    else
        (void)uv_poll_start(&connection->polls[side], events, on_poll);
}

void connection_update(struct connection *connection)
{
    bool hears_server =
        connection->state == CONNECTION_RELAYING && !connection->down.has_end && !flow_is_waiting(&connection->down);

    int from_client = (connection_may_hear_client(connection) ? UV_READABLE : 0) |
                      (flow_is_waiting(&connection->down) ? UV_WRITABLE : 0);

    if (connection->state == CONNECTION_ENDED)
        return;
    /* After its end nothing comes but an error, which is told to who waits for anything: that it is gone. */
    if (from_client == 0 && connection->up.has_end)
        from_client = UV_PRIORITIZED;
    want(connection, CLIENT, from_client);
    want(connection, SERVER, (hears_server ? UV_READABLE : 0) | (flow_is_waiting(&connection->up) ? UV_WRITABLE : 0));
}

ssize_t connection_receive(struct connection *connection, size_t most)
{
    uint8_t piece[PIECE_BYTES];
    size_t room = connection->held.length < most ? most - connection->held.length : 0;
    ssize_t n = recv(connection->fds[CLIENT], piece, room < sizeof piece ? room : sizeof piece, MSG_DONTWAIT);

    if (n < 0)
        return errno == EINTR ? -EAGAIN : -errno;
    int r = buf_append(&connection->held, piece, (size_t)n);
    return r < 0 ? r : n;
}

void connection_consume(struct connection *connection, size_t count)
{
    struct buf *held = &connection->held;

    if (count == 0)
        return;
    held->length -= count;
    memmove(held->data, held->data + count, held->length);
}

static int pump_down(struct connection *connection)
{
    if (connection->fds[SERVER] < 0)
        return flow_flush(&connection->down, connection->fds[CLIENT]);
    int r = flow_pump(&connection->down, connection->fds[SERVER], connection->fds[CLIENT]);
    connection_hear_server(connection);
    return r;
}

static bool is_over(const struct connection *connection)
{
    return connection->down.has_ended && (connection->up.has_ended || connection->proxy != NULL);
}

static bool is_over_limit(struct connection *connection)
{
    count_bytes(connection);
    return connection->sandbox->bytes_max != 0 && connection->sandbox->bytes > connection->sandbox->bytes_max;
}

static void refuse_bytes(struct connection *connection)
{
    connection_refuse(connection, 403, connection->guard.why);
}

static void relay(struct connection *connection)
{
    int r = pump_down(connection);

    if (r == 0)
        r = connection_pump_up(connection);
    if (r == -EACCES && connection->guard.refused) {
        refuse_bytes(connection);
    } else if (r < 0 || is_over(connection)) {
        connection_end(connection, r < 0);
    } else if (is_over_limit(connection)) {
        (void)snprintf(connection->why, sizeof connection->why, "the sandbox has moved as many bytes as it may");
        connection_end(connection, true);
    } else {
        if (connection->down.has_ended)
            connection_set_timer(connection, CLOSING_MS, connection_expired);
        connection_update(connection);
    }
}

static void ask_proxy(struct connection *connection)
{
    struct proxy *proxy = connection->proxy;
    enum proxy_outcome outcome = PROXY_MORE;
    ssize_t n = 1;

    while (outcome == PROXY_MORE && n > 0) {
        size_t used = 0;
        n = connection_receive(connection, GUARD_HELD_MAX);
        if (n <= 0)
            break;
        outcome = proxy_read(proxy, connection->held.data, connection->held.length, &used);
        connection_consume(connection, used);
    }
    if (outcome == PROXY_BAD) {
        connection_refuse(connection, proxy->status, proxy->why);
        return;
    }
    if (outcome == PROXY_MORE) {
        if (n != -EAGAIN)
            connection_end(connection, false);
        return;
    }
    connection->goal.is_address = proxy->is_address;
    connection->goal.address = proxy->address;
    connection->goal.port = proxy->port;
    memcpy(connection->goal.name, proxy->name, sizeof proxy->name);
    connection_reach(connection);
    if (connection->state == CONNECTION_RELAYING)
        connection_update(connection);
}

/* What a proxy's client and server are told first. */
static int introduce(struct connection *connection)
{
    static const char established[] = "HTTP/1.1 200 Connection established\r\n\r\n";
    struct proxy *proxy = connection->proxy;

    if (proxy == NULL)
        return 0;
    if (!proxy->is_connect) {
        int r = flow_push(&connection->up, connection->fds[SERVER], proxy->head.data, proxy->head.length);
        return r < 0 ? r : connection_take_body(connection);
    }
    proxy_release(proxy);
    free(proxy);
    connection->proxy = NULL;
    int r = flow_push(&connection->down, connection->fds[CLIENT], (const uint8_t *)established, sizeof established - 1);
    /* These are ours: the tunnel has not begun. */
    connection->down.bytes = 0;
    return r < 0 || connection->held.length == 0 ? r : connection_inspect(connection);
}

/*
 * What one side sends and the other does not take stays here, in memory that all of the machine's connections share
 * (tcp_mem): the kernel would let each socket have several MiB of it.
 */
void connection_limit_buffers(struct connection *connection, int fd)
{
    int bytes = sandbox_buffer_bytes(connection->sandbox);

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, sizeof bytes);
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    if (bytes < SANDBOX_BUFFER_BYTES)
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
}

/* Of a peer that is gone nothing is heard. */
void connection_keep_alive(int fd)
{
    static const struct {
        int level;
        int name;
        int value;
    } options[] = {
        {SOL_SOCKET, SO_KEEPALIVE, 1},
        {IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S},
        {IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_EACH_S},
        {IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_TIMES},
    };

    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        (void)setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof options[i].value);
}

void connection_open(struct connection *connection, int fd)
{
    uv_loop_t *loop = &connection->sandbox->airlock->loop;
    int on = 1;

    connection->fds[SERVER] = fd;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    connection_keep_alive(fd);
    connection_limit_buffers(connection, fd);
    (void)uv_timer_stop(&connection->timer);
    if (uv_poll_init(loop, &connection->polls[SERVER], fd) < 0) {
        connection_end(connection, true);
        return;
    }
    connection->polls[SERVER].data = connection;
    connection->has_poll[SERVER] = true;
    connection->handles++;
    int r = introduce(connection);
    if (r == -EACCES && connection->guard.refused)
        refuse_bytes(connection);
    else if (r < 0)
        connection_end(connection, true);
    else
        pump(connection);
}

static void on_dns_answer(void *data, const uint8_t *answer, size_t length)
{
    struct connection *connection = data;
    uint8_t framed[2 + DNS_ANSWER_MAX] = {(uint8_t)(length >> 8), (uint8_t)length};

    connection->question = NULL;
    memcpy(framed + 2, answer, length);
    if (flow_push(&connection->down, connection->fds[CLIENT], framed, length + 2) < 0)
        connection_end(connection, true);
    else
        pump(connection);
}

/* One question after the other, each with its length in front (RFC 1035, 4.2.2). */
static void answer_dns(struct connection *connection)
{
    const uint8_t *data = connection->held.data;

    if (flow_flush(&connection->down, connection->fds[CLIENT]) < 0) {
        connection_end(connection, true);
        return;
    }
    while (connection->question == NULL && !flow_is_waiting(&connection->down)) {
        size_t length = connection->held.length >= 2 ? (size_t)data[0] << 8 | data[1] : 0;
        if (connection->held.length >= 2 && (length > DNS_QUERY_MAX || length < DNS_HEADER)) {
            connection_end(connection, true);
            return;
        }
        if (connection->held.length >= 2 && connection->held.length >= length + 2) {
            connection->question = question_ask(connection->sandbox, data + 2, length, on_dns_answer, connection);
            connection_consume(connection, length + 2);
            if (connection->question == NULL) {
                connection_end(connection, true);
                return;
            }
            break;
        }
        ssize_t n = connection_receive(connection, DNS_QUERY_MAX + 2);
        data = connection->held.data;
        if (n == -EAGAIN)
            break;
        if (n <= 0) {
            connection_end(connection, n < 0);
            return;
        }
    }
    connection_set_timer(connection, IDLE_DNS_MS, connection_expired);
    connection_update(connection);
}

static void pump(struct connection *connection)
{
    switch (connection->state) {
    case CONNECTION_ASKING:
        ask_proxy(connection);
        break;
    case CONNECTION_RESOLVING:
        answer_dns(connection);
        break;
    case CONNECTION_RELAYING:
        relay(connection);
        break;
    case CONNECTION_REFUSING:
        if (flow_flush(&connection->down, connection->fds[CLIENT]) < 0)
            connection_end(connection, true);
        else
            connection_hear_refused(connection);
        break;
    case CONNECTION_ENDED:
        break;
    }
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct connection *connection = poll->data;

    (void)events;
    /* libuv has stopped the handle: one side is broken. What it had said before is still passed on. */
    if (status < 0) {
        connection->events[poll == &connection->polls[SERVER] ? SERVER : CLIENT] = 0;
        pump(connection);
        connection_end(connection, true);
        return;
    }
    pump(connection);
}
