/*
 * request: one request and its answer, whatever protocol it came by.
 *
 * Used by the gateway's surfaces. The server makes it and calls the route's handler: when the body has come
 * (collected), or when the head has come (ROUTE_STREAM). From then on the handler owes exactly one end:
 * request_answer(), or request_start() with any number of request_write() and then request_finish(). It owes it also
 * when the client has gone meanwhile; what is written then goes nowhere. With the end the request is gone: nothing of
 * it may be touched after.
 *
 * Everything in here lives until that end. Strings end in NUL and contain none.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "gateway/net/http.h"
#include "gateway/net/peer.h"
#include "gateway/net/router.h"
#include "gateway/net/target.h"

#include <stdbool.h>
#include <stdint.h>

struct connection;

enum {
    REQUEST_ID_MAX = 64,
    REQUEST_ANSWER_HEADERS_MAX = 32,
};

/* What a handler may want to be told. Each may be NULL. The table must outlive the request. */
struct request_events {
    /* ROUTE_STREAM: the next bytes of the body. The end is a call with no bytes, exactly once unless the client went.
     */
    void (*body)(struct request *request, const void *data, size_t length);
    /* After request_write() said wait: there is room again. */
    void (*drain)(struct request *request);
    /*
     * The client went away: it closed its end, vanished, took nothing for too long, or the server stops. At most once,
     * never after the end. One that only closed its sending end still gets the answer, if it is answered.
     */
    void (*gone)(struct request *request);
};

/* Those without a comment on who sets them are only to be read. */
struct request {
    enum http_method method; /* HEAD is served by GET rows: the body of the answer is left out by itself */
    const char *raw_target;  /* as it came */
    struct target target;    /* decoded */
    struct headers headers;
    const char *host; /* what was asked for, in lower case, with its port; "" when HTTP/1.0 named none */
    struct peer *peer;
    char id[REQUEST_ID_MAX + 1];
    const struct route *route; /* NULL: no row serves it */
    struct router_match match;
    struct buf body; /* of collected bodies; its data is NULL when there is none */
    struct arena arena;
    void *context;                       /* the server's */
    void *user;                          /* the handler's own; NULL at first */
    void *principal;                     /* the `before` hook's own; NULL at first */
    const struct request_events *events; /* set by the handler */
    uint64_t start_ns;                   /* when its head was complete */
    bool is_gone;                        /* the client went away */

    /* The rest belongs to the server. */
    struct connection *connection;
    bool is_handed; /* to the hook or the handler, who now owes the end */
    bool is_ending;
    struct header answer_headers[REQUEST_ANSWER_HEADERS_MAX];
    size_t answer_header_count;
    uint64_t content_length;
    uint64_t body_received;
    uint64_t answer_left; /* bytes still owed of an answer whose length was promised */
    uint64_t answer_sent; /* bytes of body */
    unsigned answer_status;
    unsigned minor_version;
    bool has_length; /* of the request */
    bool is_chunked;
    bool wants_keep_alive;
    bool expects_continue;
    bool is_paused;
    bool is_answer_chunked;
    bool has_answer_length;
    bool has_no_answer_body;
    bool wants_drain;
};

/* A header of the request, in any case of letters; a query parameter; a path parameter (a copy). NULL: there is none.
 */
const char *request_header(const struct request *request, const char *name);
const char *request_query(const struct request *request, const char *name);
const char *request_parameter(struct request *request, const char *name);

/* Memory that lives as long as the request. NULL over its cap. */
void *request_alloc(struct request *request, size_t size);

/*
 * Set a header of the answer, before it starts; a second time replaces it. Those that are always there may be replaced
 * as well, or left out with the value NULL. Copies both. -EINVAL for what could not stand in a header or is the
 * server's own (Content-Length, Transfer-Encoding, Connection, Date), -ENOBUFS, -ENOMEM.
 */
_must_use_ int request_set_header(struct request *request, const char *name, const char *value);

/* A whole answer, and the end. `type` may be NULL when there is no body. What can't be sent at once is copied. */
void request_answer(struct request *request, unsigned status, const char *type, const void *body, size_t length);

/*
 * The answer the server itself would give: the refusal that was set in the server's options, as the surface writes
 * errors. The end.
 */
void request_refuse(struct request *request, unsigned status, const char *code, const char *message);

enum { REQUEST_LENGTH_UNKNOWN = -1 };

/* Start an answer in pieces. With a length exactly that many bytes must follow, or the connection is ended. */
void request_start(struct request *request, unsigned status, const char *type, int64_t length);

/*
 * Write a piece. 1: go on; 0: taken, but wait for `drain` before the next; -EPIPE: nobody reads it, or any more (the
 * answer to HEAD has no body); -ENOBUFS: more than the cap on unsent bytes is waiting, so the client was ended. After
 * an error `gone` is not called any more; request_finish() is what is left to do.
 */
_must_use_ int request_write(struct request *request, const void *data, size_t length);

/* The end of an answer in pieces. */
void request_finish(struct request *request);

/* The end of an answer that can't be completed: the connection is ended so that the client notices. */
void request_abort(struct request *request);

/* Bytes of the answer that wait for the client. */
size_t request_unsent(const struct request *request);

/* Has the answer started? */
bool request_has_started(const struct request *request);

/* ROUTE_STREAM: no more body for now (what was read already may still come: at most one piece); go on. */
void request_pause(struct request *request);
void request_resume(struct request *request);

/* After a `before` hook said BEFORE_LATER and has not answered: go on. */
void request_proceed(struct request *request);
