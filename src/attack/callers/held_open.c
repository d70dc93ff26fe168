/*
 * held-open: clients that hold on while the daemon is asked to end: idle, half-way through, following a command that
 * does not stop. It ends, and everything with it.
 */
#include "attack/attack.h"
#include "attack/tenant.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { KINDS = 6, LIMIT_MS = 20000 };

static void calls(struct attempt *attempt)
{
    static struct caller callers[KINDS];
    struct tenant tenant;
    char path[TENANT_PATH_SIZE];
    char texts[KINDS][512];

    if (!tenant_move_in(&tenant, attempt, caller_key(), NULL) ||
        !tenant_start(&tenant, attempt, "trap '' TERM INT HUP; while :; do echo x; sleep 0.01; done"))
        return;
    const char *end = "HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer";
    (void)snprintf(texts[0], sizeof texts[0], "%s", "");
    (void)snprintf(texts[1], sizeof texts[1], "GET /healthz HTTP/1.1\r\nHo");
    (void)snprintf(texts[2], sizeof texts[2], "PUT %s %s %s\r\nContent-Length: 1000000\r\n\r\nabc",
                   tenant_path(&tenant, "/files/x", path), end, caller_key());
    (void)snprintf(texts[3], sizeof texts[3], "GET /api/v1/execs/%s/output?follow=true %s %s\r\n\r\n", tenant.exec, end,
                   caller_key());
    (void)snprintf(texts[4], sizeof texts[4], "GET /api/v1/events %s %s\r\n\r\n", end, caller_key());
    (void)snprintf(texts[5], sizeof texts[5],
                   "POST %s %s %s\r\nContent-Type: application/json\r\nContent-Length: 70\r\n\r\n"
                   "{\"tool\":\"shell_exec\",\"arguments\":{\"command\":\"trap '' TERM; sleep 99\"}}",
                   tenant_path(&tenant, "/tools/execute", path), end, caller_key());
    for (size_t i = 0; i < KINDS; i++) {
        if (caller_dial(&callers[i]) == 0)
            ignore_result(caller_send(&callers[i], texts[i], strlen(texts[i])));
    }
    (void)usleep(100000);
    pid_t daemon = (pid_t)attempt_canary_number("DOOR_PID");
    int r = kill(daemon, SIGTERM);
    struct caller late = {.fd = -1};
    for (unsigned ms = 0; r == 0 && ms < LIMIT_MS && caller_dial(&late) == 0; ms += 20) {
        caller_hang_up(&late);
        (void)usleep(20000);
    }
    attempt_say(attempt, "holding on to it", r == 0 && late.fd < 0, "it still listens");
    for (size_t i = 0; i < KINDS; i++)
        caller_hang_up(&callers[i]);
}

const struct attack attack_held_open = {
    .name = "held-open",
    .tries = "holding on while the daemon is to end",
    .group = ATTACK_CALLERS,
    .calls = calls,
    .as_operator = true,
    .ends_daemon = true,
};
