/*
 * hutch-airlock: the only way out of a sandbox.
 *
 * Started by a keeper, confined, as a user of its own, with the machine's network. Descriptor 3 is the keeper's link,
 * on which sandboxes come; 4 is that of whoever says what they may reach, and is told every decision. Standard input is
 * the machine's resolv.conf. Ends with either link.
 */
#include "airlock/internal.h"
#include "base/fd.h"
#include "wire/link.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { CONFIGURATION_MAX = 16384, PLUG_FDS = 3, GONE_MAX = 1024 };

static uint8_t frame[WIRE_FRAME_MAX];

/* Unplugged before they were plugged in, which the two links allow: the latest of them. 0 is no sandbox's. */
static struct {
    uint64_t ids[GONE_MAX];
    size_t next;
} gone;

/* The conversation is over, one way or another: so are we, and with us every connection. */
static _Noreturn void leave(const char *why)
{
    if (why != NULL)
        (void)fprintf(stderr, "hutch-airlock: %s\n", why);
    _exit(why != NULL ? 1 : 0);
}

static bool take_gone(uint64_t id)
{
    for (size_t i = 0; i < GONE_MAX; i++) {
        if (gone.ids[i] != id)
            continue;
        gone.ids[i] = 0;
        return id != 0;
    }
    return false;
}

static struct sandbox *find_or_make(struct airlock *airlock, uint64_t id)
{
    struct sandbox *sandbox = sandbox_find(airlock, id);
    struct error err;

    if (sandbox == NULL && sandbox_new(airlock, id, &sandbox, &err) < 0)
        leave(err.message);
    return sandbox;
}

static int add_rules(struct rules *rules, struct wire_strv list, enum rules_action action, enum rules_scope scope,
                     struct error *err)
{
    int r = 0;

    for (const char *text = NULL; r == 0 && (text = wire_strv_next(list, text)) != NULL;)
        r = rules_add(rules, action, scope, text, err);
    return r;
}

static int make_rules(const struct wire_rules *message, struct rules **ret_rules, struct error *err)
{
    struct rules *rules = NULL;

    if (message->mode >= RULES_MODES)
        return error_set(err, ERROR_INVALID, 0, "there is no such mode of the network");
    int r = rules_new((enum rules_mode)message->mode, &rules, err);
    if (r == 0)
        r = add_rules(rules, message->allow, RULES_ALLOW, RULES_OF_SANDBOX, err);
    if (r == 0)
        r = add_rules(rules, message->deny, RULES_DENY, RULES_OF_SANDBOX, err);
    if (r < 0) {
        rules_free(rules);
        return r;
    }
    *ret_rules = rules;
    return 0;
}

/* All of them are good, or those before stay. */
static void take_rules(struct airlock *airlock, const struct wire_rules *message)
{
    struct rules *rules = NULL;
    struct error err = {0};
    int r = make_rules(message, &rules, &err);
    struct wire_message answer = {.type = WIRE_RULED,
                                  .ruled = {.sandbox = message->sandbox,
                                            .generation = message->generation,
                                            .detail = wire_str(r < 0 ? err.message : "")}};

    if (r == 0) {
        struct sandbox *sandbox = find_or_make(airlock, message->sandbox);
        if (message->connections_max != 0)
            sandbox->connections_max = message->connections_max;
        if (message->connects_per_second != 0)
            sandbox->connects_per_second = message->connects_per_second;
        sandbox->bytes_max = message->bytes_max;
        sandbox_set_rules(sandbox, rules);
    }
    if (outbox_send(&airlock->outbox, message->sandbox, &answer, OUTBOX_ANSWER) < 0)
        leave("answering a list of rules");
}

static void unplug(struct airlock *airlock, uint64_t id)
{
    struct sandbox *sandbox = sandbox_find(airlock, id);

    if (sandbox == NULL || !sandbox->is_plugged) {
        gone.ids[gone.next] = id;
        gone.next = (gone.next + 1) % GONE_MAX;
    }
    if (sandbox != NULL)
        sandbox_remove(sandbox);
}

static void hear_client(struct airlock *airlock)
{
    struct wire_message message;
    /* It does not read what it asks for: neither do we, until it does. */
    if (!outbox_has_room(&airlock->outbox)) {
        (void)uv_poll_stop(&airlock->client);
        return;
    }
    int r = link_receive(WIRE_CLIENT_FD, WIRE_BY_CLIENT, WIRE_IN_RUNNING, frame, &message, NULL, NULL);

    if (r == -EAGAIN)
        return;
    if (r <= 0)
        leave(r < 0 ? "the client sent what it may not" : NULL);
    if (message.type == WIRE_RULES) {
        take_rules(airlock, &message.rules);
    } else if (message.type == WIRE_UNPLUG) {
        unplug(airlock, message.unplug.sandbox);
    } else {
        leave("the client sent what it may not");
    }
}

static void hear_keeper(struct airlock *airlock)
{
    struct wire_message message;
    struct error err = {0};
    int fds[FD_PASS_MAX];
    size_t fd_count = 0;
    int r = link_receive(WIRE_KEEPER_FD, WIRE_BY_KEEPER, WIRE_IN_RUNNING, frame, &message, fds, &fd_count);

    if (r == -EAGAIN)
        return;
    if (r <= 0)
        leave(r < 0 ? "the keeper sent what it may not" : NULL);
    if (message.type != WIRE_PLUG || fd_count != PLUG_FDS)
        leave("the keeper sent what it may not");
    if (take_gone(message.plug.sandbox)) {
        fd_close_many(fds, fd_count);
        return;
    }
    if (sandbox_plug(find_or_make(airlock, message.plug.sandbox), fds, &err) < 0)
        leave(err.message);
}

static void on_keeper(uv_poll_t *poll, int status, int events)
{
    (void)events;
    if (status < 0)
        leave(NULL);
    hear_keeper(poll->data);
}

static void on_client(uv_poll_t *poll, int status, int events)
{
    (void)events;
    if (status < 0)
        leave(NULL);
    hear_client(poll->data);
}

static void on_emptied(void *data)
{
    struct airlock *airlock = data;

    (void)uv_poll_start(&airlock->client, UV_READABLE, on_client);
}

static int set_up(struct airlock *airlock, struct error *err)
{
    static char configuration[CONFIGURATION_MAX + 1];
    ssize_t n = fd_read_all(STDIN_FILENO, configuration, CONFIGURATION_MAX);

    if (n < 0)
        return error_set(err, ERROR_SYSTEM, (int)-n, "reading the resolver's configuration");
    if (uv_loop_init(&airlock->loop) < 0 || uv_poll_init(&airlock->loop, &airlock->keeper, WIRE_KEEPER_FD) < 0 ||
        uv_poll_init(&airlock->loop, &airlock->client, WIRE_CLIENT_FD) < 0)
        return error_set(err, ERROR_SYSTEM, 0, "starting the loop");
    if (outbox_init(&airlock->outbox, &airlock->loop, WIRE_CLIENT_FD, on_emptied, airlock) < 0)
        return error_set(err, ERROR_SYSTEM, 0, "watching the client's link");
    decision_init(airlock);
    airlock->keeper.data = airlock;
    airlock->client.data = airlock;
    int r = resolver_new(&airlock->loop, configuration, &airlock->resolver, err);
    if (r < 0)
        return r;
    if (uv_poll_start(&airlock->keeper, UV_READABLE, on_keeper) < 0 ||
        uv_poll_start(&airlock->client, UV_READABLE, on_client) < 0)
        return error_set(err, ERROR_SYSTEM, 0, "watching the links");
    return 0;
}

int main(void)
{
    static struct airlock airlock;
    struct error err = {0};

    (void)signal(SIGPIPE, SIG_IGN);
    if (set_up(&airlock, &err) < 0)
        leave(err.message);
    (void)uv_run(&airlock.loop, UV_RUN_DEFAULT);
    leave("the loop has ended");
}
