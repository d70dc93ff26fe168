/*
 * many-bodies: many bodies at once, each as large as allowed, of which the last byte never comes: together they must
 * not take the daemon's memory.
 */
#include "attack/attack.h"
#include "attack/caller.h"

#include <stdio.h>
#include <string.h>

enum { CALLERS = 24, BODY_MB = 31, PIECE = 1 << 20 };

/* The statuses that came. */
static unsigned judge(struct caller *callers, unsigned *ret_unheard)
{
    unsigned refused = 0;

    for (unsigned i = 0; i < CALLERS; i++) {
        struct reply reply = {0};
        int r = caller_take(&callers[i], &reply);
        refused += r == 0 && (reply.status == 503 || reply.status == 408) ? 1 : 0;
        *ret_unheard += r < 0 ? 1 : 0;
        reply_release(&reply);
        caller_hang_up(&callers[i]);
    }
    return refused;
}

static void calls(struct attempt *attempt)
{
    static char piece[PIECE];
    static struct caller callers[CALLERS];
    unsigned unheard = 0;
    char head[256];

    (void)memset(piece, ' ', sizeof piece);
    (void)snprintf(head, sizeof head,
                   "POST /api/v1/sandboxes HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n"
                   "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n",
                   caller_key(), (BODY_MB << 20) + 1);
    for (unsigned i = 0; i < CALLERS; i++) {
        if (caller_dial(&callers[i]) == 0)
            ignore_result(caller_send(&callers[i], head, strlen(head)));
    }
    for (unsigned mb = 0; mb < BODY_MB; mb++) {
        for (unsigned i = 0; i < CALLERS; i++)
            ignore_result(caller_send(&callers[i], piece, sizeof piece)); /* who was refused is not heard */
    }
    unsigned refused = judge(callers, &unheard);
    attempt_say(attempt, "24 bodies of 31 MiB", refused + unheard == CALLERS, "%u of them were let in",
                CALLERS - refused - unheard);
}

const struct attack attack_many_bodies = {
    .name = "many-bodies",
    .tries = "many large bodies at once",
    .group = ATTACK_CALLERS,
    .calls = calls,
    .memory_most = 256 << 20, /* four of the largest, in buffers that double; all of them would be 744 */
};
