/*
 * server: listeners, connections and requests on one libuv loop.
 *
 * Used by the gateway's main thread only; nothing in here may be called from another. Owns its listeners and
 * connections. Handlers own the requests they were given until they end them (request.h).
 */
#pragma once

#include "base/error.h"
#include "gateway/net/request.h"
#include "gateway/net/router.h"
#include "gateway/net/tls.h"

#include <stdint.h>
#include <uv.h>

struct server;

enum before {
    BEFORE_GO_ON,
    BEFORE_ANSWERED, /* or will be: the hook has taken the request over */
    BEFORE_LATER,    /* request_proceed() follows, or an answer */
};

/* Limits and timeouts; server_limits_default() fills in what the comments say. */
struct server_limits {
    size_t connections_max;    /* 10,000; beyond that the longest one without a request makes room, else the new one is
                                  told 503, or just closed with TLS or beyond 64 of them */
    size_t request_line_bytes; /* 8 KiB: 414 */
    size_t headers_bytes;      /* 32 KiB: 431; also 431 beyond HTTP_HEADERS_MAX of them */
    size_t arena_bytes;        /* 256 KiB per request */
    size_t unsent_low_bytes;   /* 256 KiB: above it request_write() says wait */
    size_t unsent_cap_bytes;   /* 4 MiB: above it the client is ended; a whole answer may be larger */
    size_t bodies_bytes;       /* 128 MiB of collected bodies, of all clients together: 503 */
    size_t pending_bytes;      /* 64 KiB that a client may send ahead of its turn before it is no longer read */
    uint64_t headers_ms;       /* 10 s from the first byte to the end of the head, TLS handshake included: 408 */
    uint64_t body_silence_ms;  /* 30 s without a byte of the body: 408 */
    uint64_t body_bytes_per_s; /* 512: what a collected body must come with on average after body_silence_ms */
    uint64_t idle_ms;          /* 75 s without a request */
    uint64_t write_stall_ms;   /* 30 s in which the client takes nothing */
    uint64_t linger_ms;        /* 2 s for the client to read the last answer, again while it sends; 10 s in all */
    uint64_t tick_ms;          /* 250: how exact all these are */
};

struct server_options {
    uv_loop_t *loop;
    const struct router *router; /* must outlive the server */
    struct server_limits limits;
    void *context; /* becomes request->context */
    /* Once per request, when its head is complete, before its body is read. May be NULL. */
    enum before (*before)(struct request *request);
    /*
     * How errors look: 404, 405, 413, 415 and the like. Must end the request. NULL: a JSON object as /api/v1 has it.
     * What can't be parsed has no request; it is always answered that way.
     */
    void (*refuse)(struct request *request, unsigned status, const char *code, const char *message);
    /* What was answered with `status` although it never became a request: it can't be parsed, or never came. May be
     * NULL. */
    void (*bad)(void *context, const struct peer *peer, unsigned status, const char *message);
    /* After each answer, for logs and metrics. May be NULL. `status` 0: the client went before it was answered. */
    void (*done)(const struct request *request, unsigned status, uint64_t bytes_sent, uint64_t duration_ns);
};

struct server_counts {
    uint64_t connections;         /* now */
    uint64_t connections_total;   /* accepted */
    uint64_t connections_refused; /* closed at once: too many */
    uint64_t connections_evicted; /* idle ones that made room */
    uint64_t requests;            /* in flight now */
    uint64_t requests_total;      /* whose head was understood */
    uint64_t requests_bad;        /* that could not be parsed */
    uint64_t timeouts;            /* connections ended because something took too long */
    uint64_t tls_failed;          /* handshakes */
    uint64_t bytes_in;            /* as they came over the socket */
    uint64_t bytes_out;
};

struct server_limits server_limits_default(void);

/* Limits of 0 mean the default. From here on the process ignores SIGPIPE. */
_must_use_ int server_new(const struct server_options *options, struct server **ret_server, struct error *err);

/*
 * Accept connections from a listening socket, TCP or unix. Takes the descriptor over, also on failure. With `tls` every
 * connection speaks TLS; the context must outlive the listener.
 */
_must_use_ int server_listen(struct server *server, int fd, struct tls_context *tls, struct error *err);

/* From now on new connections use another certificate; `old` may be freed, sessions of its own live on. */
void server_replace_tls(struct server *server, const struct tls_context *old, struct tls_context *fresh);

/*
 * Stop: no new connections, idle ones are closed, running requests may end until the deadline; then their clients are
 * ended and their handlers told. `stopped` (may be NULL) is called when all is closed and every request has ended; the
 * server may be freed in it or later. A second call may only move the deadline.
 */
void server_stop(struct server *server, uint64_t deadline_ms, void (*stopped)(struct server *server, void *user),
                 void *user);

/* Only after `stopped`, or before the first server_listen(). NULL is legal. */
void server_free(struct server *server);

struct server_counts server_counts(const struct server *server);
