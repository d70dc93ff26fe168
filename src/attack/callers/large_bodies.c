/*
 * large-bodies: 100 MB where a few are allowed: refused by their length, or when they become too long, and not kept.
 */
#include "attack/attack.h"
#include "attack/caller.h"

#include <string.h>

enum { CHUNK = 1 << 20, CHUNKS = 100 };

#define HEAD                                                                                                           \
    "POST /api/v1/sandboxes HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: "      \
    "chunked\r\n"

/* How far it gets, and what is said to it. */
static void try_chunks(struct attempt *attempt, const char *what, const char *key, int status)
{
    static char chunk[CHUNK + 16] = "100000\r\n";
    struct caller caller;
    struct reply reply = {0};
    int sent = 0;

    (void)memset(chunk + 8, ' ', CHUNK);
    memcpy(chunk + 8 + CHUNK, "\r\n", 3);
    int r = caller_dial(&caller);
    if (r == 0)
        r = caller_send(&caller, HEAD, sizeof HEAD - 1);
    if (r == 0 && key != NULL) {
        r = caller_send(&caller, "Authorization: Bearer ", 22);
        r = r < 0 ? r : caller_send(&caller, key, strlen(key));
        r = r < 0 ? r : caller_send(&caller, "\r\n", 2);
    }
    if (r == 0)
        r = caller_send(&caller, "\r\n", 2);
    for (; r == 0 && sent < CHUNKS; sent += r == 0 ? 1 : 0)
        r = caller_send(&caller, chunk, 8 + CHUNK + 2);
    r = caller_take(&caller, &reply);
    /* After the answer the rest is read and dropped for a while, so that it is heard; whoever goes on talking for
     * longer may not hear it. That nothing is kept shows in the daemon's memory. */
    attempt_say(attempt, what, r < 0 || reply.status == status, "%d MiB were taken, the answer is %d", sent,
                reply.status);
    caller_hang_up(&caller);
    reply_release(&reply);
}

static void calls(struct attempt *attempt)
{
    caller_try(attempt, "100 MB by length",
               &(struct ask){.method = "POST",
                             .path = "/api/v1/sandboxes",
                             .key = caller_key(),
                             .headers = "Content-Type: application/json\r\nContent-Length: 100000000\r\n"},
               STATUSES(413));
    caller_try(attempt, "100 MB that wait to be asked for",
               &(struct ask){.method = "POST",
                             .path = "/api/v1/sandboxes",
                             .key = caller_key(),
                             .headers = "Content-Type: application/json\r\nContent-Length: 100000000\r\n"
                                        "Expect: 100-continue\r\n"},
               STATUSES(413));
    caller_try(attempt, "100 MB for a route that takes none",
               &(struct ask){.path = "/healthz", .headers = "Content-Length: 100000000\r\n"}, STATUSES(413));
    caller_try(attempt, "a length beyond 64 bits",
               &(struct ask){.method = "POST",
                             .path = "/api/v1/sandboxes",
                             .key = caller_key(),
                             .headers = "Content-Type: application/json\r\nContent-Length: 18446744073709551617\r\n"},
               STATUSES(400));
    caller_try(attempt, "a packed body",
               &(struct ask){.method = "POST",
                             .path = "/api/v1/sandboxes",
                             .key = caller_key(),
                             .headers = "Content-Encoding: gzip\r\n",
                             .body = "{}"},
               STATUSES(415));
    try_chunks(attempt, "100 MiB in chunks", caller_key(), 413);
    try_chunks(attempt, "100 MiB in chunks, without a key", NULL, 401);
}

const struct attack attack_large_bodies = {
    .name = "large-bodies",
    .tries = "bodies of 100 MB",
    .group = ATTACK_CALLERS,
    .calls = calls,
};
