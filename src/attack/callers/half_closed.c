/*
 * half-closed: clients that close one direction, or break off, at every byte of a request: nothing of them is left,
 * whatever they had begun.
 */
#include "attack/attack.h"
#include "attack/tenant.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { STEP = 7, LEFT_LIMIT_MS = 5000 };

/* So far, and no further. */
static void try_cut(struct attempt *attempt, const char *text, size_t length, bool is_broken_off)
{
    struct linger none = {.l_onoff = 1};
    struct caller caller;
    struct reply reply = {0};
    char what[64];

    (void)snprintf(what, sizeof what, "%zu bytes, then %s", length, is_broken_off ? "a reset" : "half of an end");
    int r = caller_dial(&caller);
    if (r == 0)
        r = caller_send(&caller, text, length);
    if (r == 0 && is_broken_off)
        r = setsockopt(caller.fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
    else if (r == 0)
        r = shutdown(caller.fd, SHUT_WR);
    bool is_left = true;
    if (r == 0 && !is_broken_off) {
        ignore_result(caller_take(&caller, &reply)); /* a whole request may be answered */
        is_left = caller_is_left(&caller, LEFT_LIMIT_MS);
    }
    attempt_say(attempt, what, r == 0 && is_left, "the connection stays open");
    reply_release(&reply);
    caller_hang_up(&caller);
}

static void calls(struct attempt *attempt)
{
    struct tenant tenant;
    char text[512];
    char path[TENANT_PATH_SIZE];
    struct reply reply = {0};

    if (!tenant_move_in(&tenant, attempt, caller_key(), NULL))
        return;
    (void)snprintf(
        text, sizeof text,
        "POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"
        "Content-Length: 64\r\n\r\n{\"tool\":\"shell_exec\",\"arguments\":{\"command\":\"exec sleep 12345\"}}",
        tenant_path(&tenant, "/tools/execute", path), caller_key());
    for (size_t length = 0; length < strlen(text); length += STEP) {
        try_cut(attempt, text, length, length % 2 == 0);
    }
    try_cut(attempt, text, strlen(text), false);
    try_cut(attempt, text, strlen(text), true);
    bool is_there = true;
    for (int i = 0; i < 100 && is_there; i++) {
        (void)usleep(20000);
        reply_release(&reply);
        (void)tenant_shell(&tenant, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '", &reply);
        is_there = reply_says(&reply, "sleep 12345 ");
    }
    attempt_say(attempt, "a command whose caller went away", !is_there, "it goes on");
    reply_release(&reply);
    tenant_move_out(&tenant);
}

const struct attack attack_half_closed = {
    .name = "half-closed",
    .tries = "clients that close one direction, or break off",
    .group = ATTACK_CALLERS,
    .calls = calls,
};
