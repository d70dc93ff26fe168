/*
 * Theory of operation. What comes from the client is held until the guard has cleared it. Some of what is held goes on
 * ahead of that, a first line that has not ended, because only the end of it tells what it is and many a server waits
 * for no end. When the guard waits for the server's word, the first bytes from there are kept and shown to it. The
 * client's end is passed on when nothing is held that could still go on.
 */
#include "airlock/connection.h"

bool connection_may_hear_client(const struct connection *connection)
{
    switch (connection->state) {
    case CONNECTION_ASKING:
    case CONNECTION_REFUSING:
        return true;
    case CONNECTION_RESOLVING:
        return connection->question == NULL && !flow_is_waiting(&connection->down);
    case CONNECTION_RELAYING:
        if (connection->up.has_end || connection->client_ended || flow_is_waiting(&connection->up) ||
            connection->held.length >= GUARD_HELD_MAX)
            return false;
        if (connection->proxy != NULL)
            return connection->fds[SERVER] >= 0 && !connection->proxy->has_ended;
        return connection->fds[SERVER] >= 0 || connection->guard.kind != GUARD_FREE;
    case CONNECTION_ENDED:
        break;
    }
    return false;
}

/* Of the held bytes the first `cleared` go on and are gone, the next `ahead` go on and stay. */
static int pass(struct connection *connection, size_t cleared, size_t ahead)
{
    size_t sent = connection->sent;
    size_t most = cleared + ahead > sent ? cleared + ahead : sent;
    int r = 0;

    if (most > sent)
        r = flow_push(&connection->up, connection->fds[SERVER], connection->held.data + sent, most - sent);
    connection_consume(connection, cleared);
    connection->sent = most - cleared;
    return r;
}

int connection_inspect(struct connection *connection)
{
    struct guard *guard = &connection->guard;
    const struct buf *held = &connection->held;

    if (guard->waits != GUARD_NOTHING)
        return 0;
    guard->rules = connection->sandbox->rules;
    size_t cleared = connection->client_ended ? guard_look_last(guard, held->data, held->length)
                                              : guard_look(guard, held->data, held->length);
    if (guard->refused)
        return -EACCES;
    if (guard->waits != GUARD_NOTHING)
        flow_watch(&connection->down);
    return pass(connection, cleared, guard->ahead);
}

int connection_take_body(struct connection *connection)
{
    size_t used = 0;
    int r = proxy_read_body(connection->proxy, connection->held.data, connection->held.length, &used);

    return r < 0 ? r : pass(connection, used, 0);
}

static bool is_looked_at(const struct connection *connection)
{
    return connection->proxy != NULL || connection->guard.kind != GUARD_FREE || connection->held.length > 0;
}

static int flush(struct connection *connection)
{
    return connection->fds[SERVER] >= 0 ? flow_flush(&connection->up, connection->fds[SERVER]) : 0;
}

static int look(struct connection *connection)
{
    return connection->proxy != NULL ? connection_take_body(connection) : connection_inspect(connection);
}

/* A server that has ended will not say what the guard waits for. */
static int pass_end(struct connection *connection)
{
    bool is_waiting = connection->guard.waits != GUARD_NOTHING && !connection->down.has_end;

    if (!connection->client_ended || (connection->held.length > 0 && is_waiting))
        return 0;
    connection->up.has_end = true;
    return flush(connection);
}

/* In one go no more than leaves others their turn: what is there is still there at the loop's next one. */
static int hear(struct connection *connection)
{
    size_t share = 0;
    int r = 0;

    while (r == 0 && share < FLOW_SHARE && is_looked_at(connection) && connection_may_hear_client(connection)) {
        ssize_t n = connection_receive(connection, GUARD_HELD_MAX);
        if (n < 0)
            return n == -EAGAIN ? 0 : (int)n;
        connection->client_ended = n == 0;
        share += (size_t)n;
        r = look(connection);
    }
    return r;
}

int connection_pump_up(struct connection *connection)
{
    int r = flush(connection);

    /* What was held until the server had spoken. */
    if (r == 0 && connection->held.length > 0 && !connection->up.has_end && !flow_is_waiting(&connection->up))
        r = look(connection);
    if (r == 0)
        r = hear(connection);
    if (r == 0)
        r = pass_end(connection);
    if (r == 0 && !is_looked_at(connection) && connection->fds[SERVER] >= 0)
        r = flow_pump(&connection->up, connection->fds[CLIENT], connection->fds[SERVER]);
    return r;
}

void connection_hear_server(struct connection *connection)
{
    struct flow *down = &connection->down;

    if (connection->guard.waits == GUARD_NOTHING || !down->is_watching)
        return;
    guard_hear(&connection->guard, down->first, down->first_length);
    down->is_watching = connection->guard.waits != GUARD_NOTHING;
}
