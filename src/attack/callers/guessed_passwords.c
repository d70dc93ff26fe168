/*
 * guessed-passwords: passwords are slow to check on purpose: guesses of many at once must not take the time and
 * memory of others.
 */
#include "attack/attack.h"
#include "attack/caller.h"

#include <string.h>

enum { CALLERS = 24 };

static const char text[] = "GET /api/v1/tools HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                           "Authorization: Basic YWRtaW46d3Jvbmc=\r\n\r\n";

static void calls(struct attempt *attempt)
{
    static struct caller callers[CALLERS];
    unsigned refused = 0;

    for (unsigned i = 0; i < CALLERS; i++) {
        if (caller_dial(&callers[i]) == 0)
            ignore_result(caller_send(&callers[i], text, sizeof text - 1));
    }
    /* Half of them do not wait for the answer. */
    for (unsigned i = 0; i < CALLERS; i += 2)
        caller_hang_up(&callers[i]);
    for (unsigned i = 1; i < CALLERS; i += 2) {
        struct reply reply = {0};
        int r = caller_take(&callers[i], &reply);
        refused += r == 0 && (reply.status == 401 || reply.status == 429 || reply.status == 503) ? 1 : 0;
        reply_release(&reply);
        caller_hang_up(&callers[i]);
    }
    attempt_say(attempt, "24 guesses at once", refused == CALLERS / 2, "%u of %d were refused", refused, CALLERS / 2);
}

const struct attack attack_guessed_passwords = {
    .name = "guessed-passwords",
    .tries = "guessing the password, many at once",
    .group = ATTACK_CALLERS,
    .calls = calls,
    .memory_most = 192 << 20, /* two hashes at once, 64 MiB each */
};
