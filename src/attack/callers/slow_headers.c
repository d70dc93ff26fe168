/*
 * slow-headers: heads that come byte by byte from many clients at once, so that none is ever complete (slowloris,
 * CVE-2007-6750).
 */
#include "attack/attack.h"
#include "attack/caller.h"
#include "attack/work.h"

#include <string.h>
#include <unistd.h>

enum { CALLERS = 200, LIMIT_MS = 15000, REST_US = 50000 };

static const char text[] =
    "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

/* The next byte for each; how many are still listened to. */
static unsigned drip(struct caller *callers, size_t at)
{
    unsigned left = 0;

    for (unsigned i = 0; i < CALLERS; i++) {
        struct reply reply = {0};
        if (callers[i].fd < 0)
            continue;
        left++;
        if (caller_send(&callers[i], text + at % (sizeof text - 1), 1) == 0 && !caller_has_word(&callers[i]))
            continue;
        ignore_result(caller_take(&callers[i], &reply)); /* 408, or it was closed before that was read */
        reply_release(&reply);
        caller_hang_up(&callers[i]);
    }
    return left;
}

static void calls(struct attempt *attempt)
{
    static struct caller callers[CALLERS];
    uint64_t deadline_ns = work_deadline_ns(LIMIT_MS);
    unsigned left = 0;
    size_t at = 0;

    for (unsigned i = 0; i < CALLERS; i++)
        ignore_result(caller_dial(&callers[i]));
    do {
        left = drip(callers, at++);
        (void)usleep(REST_US);
    } while (left > 0 && at < sizeof text - 1 && work_goes_on(deadline_ns));
    attempt_say(attempt, "200 heads, byte by byte", left == 0, "%u are still listened to", left);
    for (unsigned i = 0; i < CALLERS; i++)
        caller_hang_up(&callers[i]);
}

const struct attack attack_slow_headers = {
    .name = "slow-headers",
    .tries = "heads that come byte by byte",
    .group = ATTACK_CALLERS,
    .calls = calls,
};
