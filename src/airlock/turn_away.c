/*
 * Theory of operation. A connection that is refused has been accepted already, so its client can be told why, in HTTP
 * with a page of words, in TLS with an alert. Which of the two it speaks shows in its first bytes; a client that speaks
 * neither, or waits for the server to speak first, is reset. The answer is followed by a short wait in which what the
 * client still sends is thrown away: closing with something unread would take the answer away from it.
 */
#include "airlock/connection.h"
#include "airlock/refusal.h"

#include <stdio.h>
#include <string.h>

enum { FIRST_BYTES_MS = 300, LINGER_MS = 1000 };

static void expired(uv_timer_t *timer)
{
    struct connection *connection = timer->data;

    connection_end(connection, !connection->is_answered);
}

static void say(struct connection *connection, const uint8_t *data, size_t length)
{
    int r = flow_push(&connection->down, connection->fds[CLIENT], data, length);

    connection->is_answered = true;
    connection->down.has_end = true;
    if (r == 0)
        r = flow_flush(&connection->down, connection->fds[CLIENT]);
    if (r < 0) {
        connection_end(connection, true);
        return;
    }
    connection_set_timer(connection, LINGER_MS, expired);
    connection_update(connection);
}

static void say_in_http(struct connection *connection)
{
    struct buf page = buf_init(REFUSAL_HTTP_MAX);

    if (refusal_http(&page, connection->status, connection->why) < 0)
        connection_end(connection, true);
    else
        say(connection, page.data, page.length);
    buf_release(&page);
}

static void say_in_tls(struct connection *connection)
{
    uint8_t record[REFUSAL_TLS_SIZE];

    refusal_tls(connection->is_failure ? REFUSAL_INTERNAL_ERROR : REFUSAL_ACCESS_DENIED, record);
    say(connection, record, sizeof record);
}

/* As soon as it is known how. */
static void answer(struct connection *connection)
{
    const struct guard *guard = &connection->guard;

    if (guard->was_http)
        say_in_http(connection);
    else if (guard->was_tls)
        say_in_tls(connection);
    else if (guard->kind != GUARD_UNKNOWN || guard->refused)
        connection_end(connection, true);
    else
        connection_update(connection);
}

void connection_hear_refused(struct connection *connection)
{
    ssize_t n = connection_receive(connection, GUARD_HELD_MAX);

    if (n == -EAGAIN)
        return;
    if (n <= 0) {
        connection_end(connection, n < 0);
        return;
    }
    if (connection->is_answered) {
        connection_consume(connection, connection->held.length);
        return;
    }
    (void)guard_look(&connection->guard, connection->held.data, connection->held.length);
    answer(connection);
}

void connection_turn_away(struct connection *connection, unsigned status, bool is_failure, const char *why)
{
    bool is_proxy = connection->proxy != NULL && connection->fds[SERVER] < 0;
    bool has_kind = connection->guard.was_http || connection->guard.was_tls;

    (void)snprintf(connection->why, sizeof connection->why, "%s", why);
    connection_leave_server(connection);
    connection->state = CONNECTION_REFUSING;
    connection->status = status;
    connection->is_failure = is_failure;
    /* In the middle of an answer nothing can be said. */
    if (connection->down.bytes > 0 && !is_proxy) {
        connection_end(connection, true);
        return;
    }
    connection_set_timer(connection, FIRST_BYTES_MS, expired);
    if (is_proxy) {
        say_in_http(connection);
        return;
    }
    if (!has_kind && !connection->guard.refused) {
        guard_release(&connection->guard);
        guard_init(&connection->guard, NULL, "", 0);
        (void)guard_look(&connection->guard, connection->held.data, connection->held.length);
    }
    answer(connection);
}
