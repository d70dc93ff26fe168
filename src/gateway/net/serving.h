/*
 * serving: what server.c, connection.c, exchange.c and request.c share. Nobody else includes it.
 *
 * A connection is in one phase at a time; it says who has to do something next, which time limit holds, and whether
 * input may be parsed. A request belongs to its connection until it is handed to the hook or a handler; then it lives
 * until they end it, and the connection's memory with it, however the connection itself fares.
 */
#pragma once

#include "gateway/net/head.h"
#include "gateway/net/http1.h"
#include "gateway/net/server.h"
#include "gateway/net/stream.h"

#include <sys/queue.h>

enum {
    DISCARD_MOST = 64 << 10,             /* of a body that nobody wants any more */
    LINGER_MOST = 128 << 20,             /* of input after the last answer */
    LINGER_TIMES = 5,                    /* as long as the limit for its silences, all of it may take */
    AHEAD_MOST = 2 * STREAM_INPUT_BYTES, /* what may still come after reading was stopped */
    SCRATCH_MOST = 64 << 10,
    TURN_REQUESTS = 16, /* of one connection before the others have their turn */
    OWN_HANDLES = 2,    /* of a server: tick and turn */
    REFUSING_MOST = 64, /* connections beyond the limit that are told so */
};

enum phase {
    PHASE_IDLE,    /* between requests */
    PHASE_HEAD,    /* some bytes of a head are here */
    PHASE_HOOK,    /* the `before` hook has the request */
    PHASE_BODY,    /* the body is coming */
    PHASE_HANDLER, /* all of the request is here, its answer is not complete */
    PHASE_DISCARD, /* it was answered, the rest of its body is dropped */
    PHASE_LINGER,  /* the last answer was given; what still comes is dropped, so that the client can read it */
    PHASE_CLOSED,
};

struct connection {
    struct stream stream;
    struct server *server;
    TAILQ_ENTRY(connection) all;
    TAILQ_ENTRY(connection) idle; /* where there is nothing to be done for it: IDLE, HEAD, DISCARD, LINGER */
    TAILQ_ENTRY(connection) ready;
    enum phase phase;
    struct peer peer;
    struct http1 http1;
    struct request *request;
    struct buf pending;    /* came ahead of its turn */
    size_t input_left;     /* of what is being processed */
    uint64_t deadline_ms;  /* of the phase; 0: none */
    uint64_t body_ms;      /* when the body began */
    uint64_t progress_ms;  /* when the client last took something */
    uint64_t sent_before;  /* what it had taken by then */
    uint64_t discard_left; /* bytes */
    uint64_t linger_ms;    /* when it is over, whatever still comes */
    bool is_processing;
    bool is_ready;    /* has input left that waits for its next turn */
    bool is_greeted;  /* TLS is ready */
    bool must_close;  /* after this answer */
    bool has_eof;     /* the client closed its end */
    bool is_refused;  /* one too many: not counted among the others */
    bool is_released; /* the stream is closed: only a request keeps it alive */
};

struct listener {
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } uv;
    struct server *server;
    struct tls_context *tls;
    bool has_waiting; /* a connection that could not be taken for want of memory */
    LIST_ENTRY(listener) all;
};

struct server {
    struct server_options options;
    struct server_counts counts;
    struct stream_shared shared;
    struct buf scratch; /* an answer's head, while it is written */
    uv_timer_t tick;
    uv_idle_t turn;
    TAILQ_HEAD(, connection) connections;     /* whose stream is not closed */
    TAILQ_HEAD(, connection) idle;            /* for which there is nothing to be done, the longest first */
    TAILQ_HEAD(ready_list, connection) ready; /* for their next turn */
    LIST_HEAD(, listener) listeners;
    size_t refusing;     /* connections that are being told that there are too many */
    size_t bodies_bytes; /* collected, of requests that are not freed yet */
    size_t handles;      /* of its own and of connections, not yet closed */
    char date[HEAD_DATE_SIZE];
    uint8_t random[512];
    size_t random_left;
    bool is_stopping;
    bool is_stopped;
    uint64_t stop_ms;
    void (*stopped)(struct server *server, void *user);
    void *stopped_user;
};

/* server.c */
void server_make_id(struct server *server, char id[REQUEST_ID_MAX + 1]);
void server_check_stopped(struct server *server);
void server_add_ready(struct server *server, struct connection *connection);
void server_remove_ready(struct server *server, struct connection *connection);

/* connection.c */
void connection_accept(struct listener *listener);
void connection_tick(struct connection *connection, uint64_t now_ms);
/* A limit of 0: none. */
void connection_set_phase(struct connection *connection, enum phase phase, uint64_t limit_ms);
/* Ready for the next request. */
void connection_make_idle(struct connection *connection);
/* Let the client read the last answer before the connection ends: a close with input unread would destroy it. */
void connection_linger(struct connection *connection);
/* The request can't be understood or does not come: answer, if that is still possible, and end. */
void connection_fail(struct connection *connection, unsigned status, const char *message);
/* At once: the client is gone, or has to be. */
void connection_end(struct connection *connection);
/* The server stops: the same for who has nothing to do, the others after their answer. */
void connection_stop(struct connection *connection);
/* The request was ended: free it and go on with the next. */
void connection_request_ended(struct connection *connection);
/* Input may be parsed again. */
void connection_continue(struct connection *connection);

static inline uint64_t connection_now(const struct connection *connection)
{
    return uv_now(connection->server->options.loop);
}

static inline const struct server_limits *connection_limits(const struct connection *connection)
{
    return &connection->server->options.limits;
}

/* exchange.c */
void exchange_event(struct connection *connection, const struct http1_event *event);
/* The hook has nothing against it. */
void exchange_admit(struct connection *connection);

/* request.c */
struct request *request_new(struct connection *connection);
void request_free(struct request *request);
/* Nobody was given it and nobody will be. */
void request_drop(struct request *request);
/* Tell whoever has it that the client went. */
void request_tell_gone(struct request *request);
/* An answer where there is no request, or none that could be answered any more. The connection ends after it. */
void request_answer_bad(struct connection *connection, unsigned status, const char *message);
