/*
 * pipelined-requests: what follows a request that was refused: as a body it must not be taken for a request, and
 * after a request that can't be read nothing may be.
 */
#include "attack/attack.h"
#include "attack/caller.h"

#include <stdio.h>
#include <string.h>

#define SECOND "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
#define JSON "Host: localhost\r\nContent-Type: application/json\r\nContent-Length: 42\r\n\r\n" SECOND

enum { SILENCE_MS = 150 };

static const struct {
    const char *what;
    const char *text;
    int status;
} rows[] = {
    {"a body behind 401", "POST /api/v1/sandboxes HTTP/1.1\r\n" JSON, 401},
    {"a body behind 404", "POST /nowhere HTTP/1.1\r\n" JSON, 404},
    {"a body behind 405", "DELETE /healthz HTTP/1.1\r\n" JSON, 405},
    {"a body of a GET", "GET /healthz HTTP/1.1\r\n" JSON, 200},
    {"a body behind 421", "POST /healthz HTTP/1.1\r\nContent-Length: 42\r\nHost: evil.example\r\n\r\n" SECOND, 421},
    {"what follows what can't be read", "GET /healthz HTTP/1.1\r\nHost localhost\r\n\r\n" SECOND, 400},
    {"what follows an unknown method", "BREW /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" SECOND, 501},
    {"what follows a close", "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" SECOND, 200},
    {"what follows HTTP/1.0", "GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n" SECOND, 200},
};

/* One answer, and silence. */
static void try_row(struct attempt *attempt, size_t i)
{
    struct caller caller;
    struct reply reply = {0};
    struct reply second = {0};
    bool is_more = false;

    int r = caller_dial(&caller);
    if (r == 0)
        r = caller_send(&caller, rows[i].text, strlen(rows[i].text));
    if (r == 0)
        r = caller_take(&caller, &reply);
    if (r == 0 && caller_says_more(&caller, SILENCE_MS))
        is_more = caller_take(&caller, &second) == 0;
    attempt_say(attempt, rows[i].what, r == 0 && reply.status == rows[i].status && !is_more,
                "the answers are %d and %d", reply.status, second.status);
    reply_release(&reply);
    reply_release(&second);
    caller_hang_up(&caller);
}

static void calls(struct attempt *attempt)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        try_row(attempt, i);
}

const struct attack attack_pipelined_requests = {
    .name = "pipelined-requests",
    .tries = "a request behind one that was refused",
    .group = ATTACK_CALLERS,
    .calls = calls,
};
