#include "airlock/internal.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* Refusals of one sandbox that are told: so many at once, and so many each second after that. */
enum { REFUSALS_MOST = 256, REFUSALS_PER_SECOND = 50, SUMMARY_MS = 1000 };

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

static void on_summary(uv_timer_t *timer);

static void note_lost(struct sandbox *sandbox)
{
    struct airlock *airlock = sandbox->airlock;

    sandbox->lost++;
    if (uv_is_active((uv_handle_t *)&airlock->summary) == 0)
        (void)uv_timer_start(&airlock->summary, on_summary, SUMMARY_MS, 0);
}

static void post(struct sandbox *sandbox, const struct decision *decision, enum outbox_class class)
{
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
                                                .lost = sandbox->lost,
                                                .name = cut(decision->name, name, sizeof name),
                                                .rule = cut(decision->rule, rule, sizeof rule),
                                                .why = cut(decision->why, why, sizeof why)}};

    if (outbox_send(&sandbox->airlock->outbox, sandbox->id, &message, class) < 0)
        note_lost(sandbox);
    else
        sandbox->lost = 0;
}

/* Refusals cost a sandbox nothing, so there may be any number of them: what it did reach is not hidden among them. */
void decision_tell(struct sandbox *sandbox, const struct decision *decision)
{
    bool is_refusal = decision->verdict != WIRE_VERDICT_ALLOWED;

    if (is_refusal &&
        !bucket_take(&sandbox->refusals, uv_now(&sandbox->airlock->loop), REFUSALS_PER_SECOND, REFUSALS_MOST))
        note_lost(sandbox);
    else
        post(sandbox, decision, is_refusal ? OUTBOX_NOTE : OUTBOX_RECORD);
}

void decision_tell_lost(struct sandbox *sandbox)
{
    static const struct decision decision = {.kind = WIRE_DECISION_DNS,
                                             .verdict = WIRE_VERDICT_DENIED,
                                             .name = "",
                                             .rule = "",
                                             .why = "there were too many decisions to tell each"};

    if (sandbox->lost > 0)
        post(sandbox, &decision, OUTBOX_RECORD);
}

static void on_summary(uv_timer_t *timer)
{
    struct airlock *airlock = timer->data;

    for (struct sandbox *sandbox = airlock->sandboxes; sandbox != NULL; sandbox = sandbox->next)
        decision_tell_lost(sandbox);
}

void decision_init(struct airlock *airlock)
{
    (void)uv_timer_init(&airlock->loop, &airlock->summary);
    airlock->summary.data = airlock;
}
