/*
 * Connections as a sandbox has them: one more, those that the rules do not allow any more, and the end of all.
 */
#include "airlock/connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    PORT_DNS = 53,
    BEGIN_MS = 30000, /* for a proxy's client to ask, and for a server to be there */
};

/* Where it wanted to go says where it came in. */
static void begin(struct connection *connection, const struct address *to, uint16_t port)
{
    struct goal *goal = &connection->goal;
    const char *name = NULL;

    connection_set_timer(connection, BEGIN_MS, connection_expired);
    goal->port = port;
    goal->address = *to;
    address_format(to, goal->name);
    if (address_is_loopback(to)) {
        connection->proxy = malloc(sizeof *connection->proxy);
        if (connection->proxy == NULL) {
            connection_end(connection, true);
            return;
        }
        proxy_init(connection->proxy);
        goal->name[0] = '\0';
    } else if (port == PORT_DNS) {
        connection->state = CONNECTION_RESOLVING;
    } else if (names_number(to, &connection->number)) {
        name = names_find(connection->sandbox->names, connection->number);
        connection->has_number = name != NULL;
        if (name == NULL) {
            connection_refuse(connection, 403, "the address stands for no name (any more); ask for it again");
            return;
        }
        (void)snprintf(goal->name, sizeof goal->name, "%s", name);
        connection_reach(connection);
    } else {
        goal->is_address = true;
        connection_reach(connection);
    }
    connection_update(connection);
}

void connection_start(struct sandbox *sandbox, int fd)
{
    struct connection *connection = calloc(1, sizeof *connection);
    struct sockaddr_storage local = {0};
    socklen_t length = sizeof local;
    struct address to = {0};
    uint16_t port = 0;
    int on = 1;

    if (connection == NULL || getsockname(fd, (struct sockaddr *)&local, &length) < 0 ||
        address_from_socket(&local, &to, &port) < 0 ||
        uv_poll_init(&sandbox->airlock->loop, &connection->polls[CLIENT], fd) < 0) {
        free(connection);
        (void)close(fd);
        return;
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    connection->sandbox = sandbox;
    connection->fds[CLIENT] = fd;
    connection->fds[SERVER] = -1;
    connection->polls[CLIENT].data = connection;
    connection->has_poll[CLIENT] = true;
    (void)uv_timer_init(&sandbox->airlock->loop, &connection->timer);
    connection->timer.data = connection;
    connection->handles = 2;
    connection->held = buf_init(GUARD_HELD_MAX);
    flow_init(&connection->up);
    flow_init(&connection->down);
    connection->next = sandbox->connections;
    if (connection->next != NULL)
        connection->next->link = &connection->next;
    connection->link = &sandbox->connections;
    sandbox->connections = connection;
    sandbox->connection_count++;
    sandbox->references++;
    connection_keep_alive(fd);
    connection_limit_buffers(connection, fd);
    begin(connection, &to, port);
}

void connections_check(struct sandbox *sandbox)
{
    struct connection *next;

    for (struct connection *connection = sandbox->connections; connection != NULL; connection = next) {
        char why[640];
        next = connection->next;
        if (connection->state != CONNECTION_RELAYING)
            continue;
        bool is_allowed = sandbox_judge(sandbox, &connection->goal, why, sizeof why).allowed;
        const char *vetted = connection->fds[SERVER] >= 0 ? connection_vet(connection) : NULL;
        if (is_allowed && vetted == NULL)
            continue;
        if (is_allowed)
            (void)snprintf(why, sizeof why, "%s leads to %s", connection->goal.name, vetted);
        (void)snprintf(connection->why, sizeof connection->why, "the rules have changed: %.600s", why);
        connection_end(connection, true);
    }
}

void connections_end(struct sandbox *sandbox)
{
    while (sandbox->connections != NULL)
        connection_end(sandbox->connections, true);
}
