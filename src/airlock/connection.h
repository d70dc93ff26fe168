/*
 * connection: one connection of a sandbox, from accept() to its end.
 *
 * arrive.c makes it. connection.c owns it: descriptors, handles, the relay. reach.c finds out where it may go and gets
 * it there. look.c lets through what its client sends. turn_away.c tells a client why not.
 */
#pragma once

#include "airlock/internal.h"

enum { CLIENT, SERVER, SIDES };

enum connection_state {
    CONNECTION_ASKING,    /* a proxy's client has not said all */
    CONNECTION_RESOLVING, /* DNS over TCP */
    CONNECTION_RELAYING,  /* the server may not be there yet */
    CONNECTION_REFUSING,
    CONNECTION_ENDED,
};

struct connection {
    struct connection *next;
    struct connection **link; /* what points here */
    struct sandbox *sandbox;
    enum connection_state state;
    int fds[SIDES];
    uv_poll_t polls[SIDES];
    bool has_poll[SIDES];
    int events[SIDES];
    uv_timer_t timer;
    unsigned handles;

    struct buf held;   /* came from the client and is not cleared yet */
    size_t sent;       /* so many of the held bytes went on already */
    bool client_ended; /* nothing more comes to be held */
    struct guard guard;
    struct proxy *proxy;
    struct flow up;
    struct flow down;
    uint64_t counted; /* bytes that the sandbox's count has */

    struct goal goal;
    uint32_t number; /* of the goal's name */
    bool has_number;
    struct address peer; /* of the server, when it is there */
    bool is_holding;     /* of the name */
    bool is_allowed;     /* its end is told */
    struct resolver_wait *resolution;
    struct dial *dial;
    struct question_wait *question;

    unsigned status; /* of a refusal */
    bool is_failure; /* of the network's, not of the rules' */
    bool is_answered;
    char why[GUARD_WHY_SIZE + 240];
};

/* connection.c */
void connection_end(struct connection *connection, bool reset);
/* Nothing more comes from it, or it is not to be reached any more. */
void connection_leave_server(struct connection *connection);
void connection_expired(uv_timer_t *timer);
void connection_keep_alive(int fd);
void connection_limit_buffers(struct connection *connection, int fd);
void connection_update(struct connection *connection);
void connection_set_timer(struct connection *connection, uint64_t ms, uv_timer_cb callback);
/* The server is there: a connected socket, which becomes the connection's. */
void connection_open(struct connection *connection, int fd);
/* Read what there is into `held`, at most `most` bytes. The count, 0 at the end, or -errno (-EAGAIN). */
_must_use_ ssize_t connection_receive(struct connection *connection, size_t most);
void connection_consume(struct connection *connection, size_t count);

/* look.c: what the client sends, through the eyes of the guard or the proxy. -EACCES: the guard says no. */
bool connection_may_hear_client(const struct connection *connection);
_must_use_ int connection_inspect(struct connection *connection);
_must_use_ int connection_take_body(struct connection *connection);
_must_use_ int connection_pump_up(struct connection *connection);
/* Something may have come from the server that the guard waits for. */
void connection_hear_server(struct connection *connection);

/* reach.c: may it go there, and if so, go. */
void connection_reach(struct connection *connection);
void connection_tell(struct connection *connection, enum wire_verdict verdict, const char *rule, const char *why);
/* Turn it away because it may not, and tell so. */
void connection_refuse(struct connection *connection, unsigned status, const char *why);
/* Is the server that its name led to one that the rules let it be led to? NULL, or what it is instead. */
const char *connection_vet(const struct connection *connection);

/* turn_away.c: `status` is the one of HTTP. The connection may be gone when this returns. */
void connection_turn_away(struct connection *connection, unsigned status, bool is_failure, const char *why);
void connection_hear_refused(struct connection *connection);
