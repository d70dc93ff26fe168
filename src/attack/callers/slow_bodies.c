/*
 * slow-bodies: bodies that stop, or come byte by byte, hold a request open for as long as they like.
 */
#include "attack/attack.h"
#include "attack/caller.h"
#include "attack/work.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { CALLERS = 40, LIMIT_MS = 15000, REST_US = 100000 };

static void calls(struct attempt *attempt)
{
    static struct caller callers[CALLERS];
    uint64_t deadline_ns = work_deadline_ns(LIMIT_MS);
    unsigned timed_out = 0;
    unsigned left = CALLERS;
    char head[256];

    (void)snprintf(head, sizeof head,
                   "POST /api/v1/sandboxes HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n"
                   "Content-Type: application/json\r\nContent-Length: 100000\r\n\r\n{",
                   caller_key());
    for (unsigned i = 0; i < CALLERS; i++) {
        if (caller_dial(&callers[i]) == 0)
            ignore_result(caller_send(&callers[i], head, strlen(head)));
    }
    while (left > 0 && work_goes_on(deadline_ns)) {
        (void)usleep(REST_US);
        for (unsigned i = 0; i < CALLERS; i++) {
            struct reply reply = {0};
            /* Half of them say a blank now and then. */
            if (callers[i].fd < 0 ||
                (!caller_has_word(&callers[i]) && (i % 2 == 0 || caller_send(&callers[i], " ", 1) == 0)))
                continue;
            timed_out += caller_take(&callers[i], &reply) == 0 && reply.status == 408 ? 1 : 0;
            reply_release(&reply);
            caller_hang_up(&callers[i]);
            left--;
        }
    }
    attempt_say(attempt, "40 bodies that do not come", left == 0 && timed_out > 0, "%u are still waited for", left);
    for (unsigned i = 0; i < CALLERS; i++)
        caller_hang_up(&callers[i]);
}

const struct attack attack_slow_bodies = {
    .name = "slow-bodies",
    .tries = "bodies that do not come",
    .group = ATTACK_CALLERS,
    .calls = calls,
};
