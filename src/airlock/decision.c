#include "airlock/internal.h"
#include "wire/link.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static struct wire_str cut(const char *text, char *room, size_t size)
{
    (void)snprintf(room, size, "%s", text);
    return wire_str(room);
}

static uint64_t unix_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000U + (uint64_t)now.tv_nsec / 1000000U;
}

void decision_tell(struct sandbox *sandbox, const struct decision *decision)
{
    struct airlock *airlock = sandbox->airlock;
    char name[256];
    char rule[321];
    char why[641];
    struct wire_message message = {.type = WIRE_DECISION,
                                   .decision = {.sandbox = sandbox->id,
                                                .time_ms = unix_ms(),
                                                .kind = (uint8_t)decision->kind,
                                                .verdict = (uint8_t)decision->verdict,
                                                .port = decision->port,
                                                .sent_bytes = decision->sent_bytes,
                                                .received_bytes = decision->received_bytes,
                                                .lost = airlock->lost,
                                                .name = cut(decision->name, name, sizeof name),
                                                .rule = cut(decision->rule, rule, sizeof rule),
                                                .why = cut(decision->why, why, sizeof why)}};

    /* A client that does not read is not waited for: what it missed is counted. */
    if (link_send(WIRE_CLIENT_FD, &message, NULL, 0) < 0)
        airlock->lost++;
    else
        airlock->lost = 0;
}
