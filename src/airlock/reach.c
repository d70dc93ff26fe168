#include "airlock/connection.h"
#include "base/cleanup.h"

#include <stdio.h>
#include <string.h>

enum { FORBIDDEN = 403, BAD_GATEWAY = 502, UNAVAILABLE = 503 };

void connection_tell(struct connection *connection, enum wire_verdict verdict, const char *rule, const char *why)
{
    struct decision decision = {.kind = WIRE_DECISION_CONNECT,
                                .verdict = verdict,
                                .name = connection->goal.name,
                                .port = connection->goal.port,
                                .rule = rule,
                                .why = why};

    decision_tell(connection->sandbox, &decision);
}

void connection_refuse(struct connection *connection, unsigned status, const char *why)
{
    connection_tell(connection, WIRE_VERDICT_DENIED, "", why);
    connection_turn_away(connection, status, false, why);
}

static void fail(struct connection *connection, const char *what, int error)
{
    char why[400];

    (void)snprintf(why, sizeof why, "%s:%u can't be reached: %s%s%s", connection->goal.name, connection->goal.port,
                   what, error != 0 ? ": " : "", error != 0 ? strerror(error) : "");
    connection_tell(connection, WIRE_VERDICT_FAILED, "", why);
    connection_turn_away(connection, BAD_GATEWAY, true, why);
}

static void deny(struct connection *connection, const char *vetted)
{
    char why[400];

    (void)snprintf(why, sizeof why, "%s leads to %s", connection->goal.name, vetted);
    connection_refuse(connection, FORBIDDEN, why);
}

static bool is_host(const struct goal *goal)
{
    return !goal->is_address && strcmp(goal->name, RULES_HOST) == 0;
}

const char *connection_vet(const struct connection *connection)
{
    struct address kept;
    const char *vetted = NULL;

    if (!is_host(&connection->goal) && !connection->goal.is_address)
        (void)sandbox_vet(connection->sandbox, connection->goal.port, &connection->peer, 1, &kept, &vetted);
    return vetted;
}

static int note_peer(struct connection *connection, int fd)
{
    struct sockaddr_storage peer = {0};
    socklen_t length = sizeof peer;
    uint16_t port = 0;

    if (getpeername(fd, (struct sockaddr *)&peer, &length) < 0)
        return -errno;
    return address_from_socket(&peer, &connection->peer, &port);
}

/* The rules may have changed while it was dialled. */
static void on_dialled(void *data, int fd)
{
    struct connection *connection = data;
    int r = fd < 0 ? fd : note_peer(connection, fd);

    connection->dial = NULL;
    const char *vetted = r < 0 ? NULL : connection_vet(connection);
    if (r == 0 && vetted == NULL) {
        connection_open(connection, fd);
        return;
    }
    close_fd(&fd);
    if (r < 0)
        fail(connection, "connecting", -r);
    else
        deny(connection, vetted);
}

/* The verdict is told only now: had its name led where it may not, it would have been another. */
static void dial(struct connection *connection, const struct address *addresses, size_t count)
{
    char why[640];
    struct rules_verdict verdict = sandbox_judge(connection->sandbox, &connection->goal, why, sizeof why);

    if (!verdict.allowed) {
        connection_refuse(connection, FORBIDDEN, why);
        return;
    }
    connection->is_allowed = true;
    connection_tell(connection, WIRE_VERDICT_ALLOWED, verdict.rule, why);
    int r = dial_start(&connection->sandbox->airlock->loop, addresses, count, connection->goal.port, on_dialled,
                       connection, &connection->dial);
    if (r < 0)
        fail(connection, "connecting", -r);
    else
        dial_set_receive_bytes(connection->dial, sandbox_buffer_bytes(connection->sandbox));
}

/* Once more, now with the port: a rule may name a private address for one port only. */
static void dial_vetted(struct connection *connection, const struct address *found, size_t count)
{
    struct address addresses[RESOLVER_ADDRESSES_MAX];
    const char *vetted = "";
    size_t kept = sandbox_vet(connection->sandbox, connection->goal.port, found, count, addresses, &vetted);

    if (kept > 0)
        dial(connection, addresses, kept);
    else
        deny(connection, vetted);
}

static void on_resolved(void *data, const struct resolution *resolution)
{
    struct connection *connection = data;
    struct sandbox *sandbox = connection->sandbox;
    struct address addresses[RESOLVER_ADDRESSES_MAX];
    const char *vetted = "";
    size_t count = 0;

    connection->resolution = NULL;
    if (resolution->error < 0) {
        names_fail(sandbox->names, connection->number);
        fail(connection, resolution->error == -ENOENT ? "there is no such name" : "resolving its name",
             resolution->error == -ENOENT ? 0 : -resolution->error);
        return;
    }
    count = sandbox_vet(sandbox, 0, resolution->addresses, resolution->count, addresses, &vetted);
    names_pin(sandbox->names, connection->number, addresses, count,
              sandbox_now_ns(sandbox) + (uint64_t)resolution->ttl * 1000000000U);
    dial_vetted(connection, resolution->addresses, resolution->count);
}

static void go_to_host(struct connection *connection)
{
    static const struct address here[] = {{4, {127, 0, 0, 1}}, {6, {[15] = 1}}};

    dial(connection, here, sizeof here / sizeof *here);
}

static void go_to_name(struct connection *connection)
{
    struct sandbox *sandbox = connection->sandbox;
    uint64_t now_ns = sandbox_now_ns(sandbox);
    struct address pins[NAMES_PINS_MAX];

    if (!connection->has_number &&
        names_assign(sandbox->names, connection->goal.name, now_ns, &connection->number) < 0) {
        connection_refuse(connection, UNAVAILABLE, "this sandbox uses as many names at once as it may");
        return;
    }
    connection->has_number = true;
    connection->is_holding = true;
    names_hold(sandbox->names, connection->number);
    if (is_host(&connection->goal)) {
        go_to_host(connection);
        return;
    }
    size_t count = names_pinned(sandbox->names, connection->number, now_ns, pins);
    if (count > 0) {
        dial_vetted(connection, pins, count);
        return;
    }
    connection->resolution = resolver_ask(sandbox->airlock->resolver, connection->goal.name, on_resolved, connection);
    if (connection->resolution == NULL)
        fail(connection, "resolving its name", ENOMEM);
}

void connection_reach(struct connection *connection)
{
    struct goal *goal = &connection->goal;
    char why[640];
    struct rules_verdict verdict = sandbox_judge(connection->sandbox, goal, why, sizeof why);

    if (!verdict.allowed) {
        connection->has_number = false;
        connection_tell(connection, WIRE_VERDICT_DENIED, verdict.rule, why);
        connection_turn_away(connection, FORBIDDEN, false, why);
        return;
    }
    connection->state = CONNECTION_RELAYING;
    guard_init(&connection->guard, connection->sandbox->rules, goal->name, goal->port);
    if (goal->is_address)
        dial(connection, &goal->address, 1);
    else
        go_to_name(connection);
}
