/*
 * guard: looks at what a sandbox sends on one connection, and says how much of it may go on to the server. Pure.
 *
 * The connection was allowed for one name; whatever names a server in the bytes must name the same one: the server name
 * of a TLS hello, the Host and the absolute target of every plain HTTP request. A hello that hides another one is
 * refused. In mode full a name that is shown may be any that is not denied. A protocol that names no server is let
 * through. Bytes that may become any of these are held until they have.
 *
 * Now and then the server has the word: whether it changes to another protocol, and whether it wants to hear the hello
 * again. Until it has spoken nothing more of the client's is let through.
 */
#pragma once

#include "airlock/hello.h"
#include "airlock/rules.h"
#include "gateway/net/http1.h"

enum { GUARD_HELD_MAX = 65536, GUARD_WHY_SIZE = 400 };

enum guard_kind {
    GUARD_UNKNOWN, /* not enough has come */
    GUARD_TLS,     /* its hello is still being read, or the server's answer */
    GUARD_RETRY,   /* so is its second one, with early data in front of it */
    GUARD_HTTP,
    GUARD_FREE, /* nothing more is to be looked at */
};

/* What the server has to say first. */
enum guard_wait {
    GUARD_NOTHING,
    GUARD_UPGRADE, /* of HTTP to WebSocket */
    GUARD_OFFER,   /* of PostgreSQL's client to go on in TLS */
    GUARD_ANSWER,  /* to a TLS hello */
};

struct guard {
    enum guard_kind kind;
    bool was_tls;
    bool was_http;
    bool refused; /* `why` says it in words; nothing more may go on */
    char why[GUARD_WHY_SIZE];
    char shown[NAME_SIZE]; /* the last name that the bytes showed, or "" */
    enum guard_wait waits;
    size_t ahead; /* so many of the bytes that stay held may go on already; they are still needed to judge the rest */

    /* The rest is its own. */
    const struct rules *rules; /* stay the caller's; may be changed between two calls */
    char name[NAME_SIZE];
    uint16_t port;
    size_t looked; /* at so many of the held bytes */
    size_t needed; /* before looking at a hello again */
    uint64_t requests;
    bool is_between;    /* two HTTP requests */
    bool wants_upgrade; /* the last one does, and is the first of the connection */
    bool is_unanswered; /* the server says something else to a hello */
    struct http1 *http1;
};

/* `name`: a normalized name, or an address as text. Without rules it only finds out what kind of bytes these are. */
void guard_init(struct guard *guard, const struct rules *rules, const char *name, uint16_t port);
void guard_release(struct guard *guard);

/*
 * `held` are the bytes that were not cleared yet, new ones behind those of the last call. How many of them, from the
 * first on, are cleared now: the caller takes them away. Of those that stay, guard->ahead go on as well, and stay.
 * Refused when guard->refused: nothing more goes on, and what has gone ahead must not come to a good end.
 */
size_t guard_look(struct guard *guard, const uint8_t *held, size_t length);

/* The same, and nothing more comes. */
size_t guard_look_last(struct guard *guard, const uint8_t *held, size_t length);

/* All that the server has said since guard->waits, or HELLO_ANSWER_MAX bytes of it. It may go on waiting. */
void guard_hear(struct guard *guard, const uint8_t *first, size_t length);
