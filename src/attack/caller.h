/*
 * caller: a client of the daemon's that says exactly the bytes it wants, and reads what HTTP/1.1 answers to them.
 *
 * Used by attempts (attack.calls) and by the pulse. The daemon is the one whose port and key are among the canaries
 * (door.h). Nothing here waits for longer than CALLER_LIMIT_MS, whatever the daemon does.
 */
#pragma once

#include "attack/attempt.h"
#include "base/buf.h"

#include <stdint.h>

enum { CALLER_LIMIT_MS = 20000, CALLER_BODY_MAX = 1 << 20, REPLY_HEAD_SIZE = 4096 };

struct caller {
    int fd;
    uint8_t held[1 << 14]; /* what came behind the answer that was taken last */
    size_t held_start;
    size_t held_length;
};

struct reply {
    int status; /* 0: no answer came */
    char head[REPLY_HEAD_SIZE];
    struct buf body; /* up to its cap, and a NUL behind it */
    uint64_t body_bytes;
    bool is_whole; /* of a body that was cut off: false */
};

/* A request with the usual lines around what matters. */
struct ask {
    const char *method; /* NULL: GET */
    const char *path;
    const char *key;     /* NULL: no credentials */
    const char *headers; /* more of them, each with its CR LF */
    const char *body;    /* NULL: none; else JSON unless `headers` has a Content-Type */
    size_t length;       /* of the body, 0: up to its NUL */
};

/* 0 or -errno. */
_must_use_ int caller_dial(struct caller *caller);
void caller_hang_up(struct caller *caller);
_must_use_ int caller_send(struct caller *caller, const void *data, size_t length);
/* The next answer. 0; -ENODATA when the connection was closed instead, -ETIMEDOUT, -EBADMSG, -errno. */
_must_use_ int caller_take(struct caller *caller, struct reply *ret_reply);
/* Something is there to be taken, or its end. */
bool caller_has_word(const struct caller *caller);
/* The same within this time. */
bool caller_says_more(const struct caller *caller, unsigned limit_ms);
/* The daemon closes the connection within this time, and says nothing more. */
bool caller_is_left(struct caller *caller, unsigned limit_ms);

void reply_release(struct reply *reply);
/* The first text or number of this name in a JSON body, "" for none. */
void reply_field(const struct reply *reply, const char *name, char *ret_text, size_t size);
bool reply_says(const struct reply *reply, const char *words);

/* The key that may do everything. */
const char *caller_key(void);

/* On a connection of its own; the status, 0 for no answer. `ret_reply` may be NULL. */
int caller_ask(const struct ask *ask, struct reply *ret_reply);

/* One of these statuses and no other is a refusal. */
#define STATUSES(...) ((const int[]){__VA_ARGS__, 0})
void caller_try(struct attempt *attempt, const char *what, const struct ask *ask, const int *statuses);

/* Bytes as they are: one answer with such a status, and the connection is closed. */
void caller_try_bytes(struct attempt *attempt, const char *what, const char *bytes, size_t length, const int *statuses);
