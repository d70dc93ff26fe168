#include "gateway/engine/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *event_kind_name(enum event_kind kind)
{
    static const char *const names[EVENT_KINDS] = {
        [EVENT_SANDBOX_CREATED] = "sandbox.created", [EVENT_SANDBOX_READY] = "sandbox.ready",
        [EVENT_SANDBOX_FAILED] = "sandbox.failed",   [EVENT_SANDBOX_PAUSED] = "sandbox.paused",
        [EVENT_SANDBOX_RESUMED] = "sandbox.resumed", [EVENT_SANDBOX_STOPPED] = "sandbox.stopped",
        [EVENT_SANDBOX_STARTED] = "sandbox.started", [EVENT_SANDBOX_LIMITED] = "sandbox.limited",
        [EVENT_SANDBOX_ENDED] = "sandbox.ended",     [EVENT_SANDBOX_OOM] = "sandbox.oom",
        [EVENT_EXEC_STARTED] = "exec.started",       [EVENT_EXEC_ENDED] = "exec.ended",
        [EVENT_POOL_FILLED] = "pool.filled",         [EVENT_POOL_DRAINED] = "pool.drained",
    };

    return kind < EVENT_KINDS ? names[kind] : "unknown";
}

static void tell_all(struct engine *engine)
{
    struct event_subscriber *next;

    for (struct event_subscriber *subscriber = engine->subscribers; subscriber != NULL; subscriber = next) {
        if (subscriber->is_told) {
            next = subscriber->next; /* it caused this event itself and will look again */
            continue;
        }
        subscriber->is_told = true;
        subscriber->news(subscriber->data, subscriber);
        subscriber->is_told = false;
        next = subscriber->next;
        if (subscriber->is_free)
            events_unsubscribe(subscriber);
    }
}

void event_publish(struct engine *engine, enum event_kind kind, const struct sandbox *sandbox, const struct exec *exec,
                   int64_t value)
{
    if (engine->is_closing)
        return;
    struct event *event = &engine->events[++engine->event_seq % engine->events_room];
    const char *owner = exec != NULL ? exec->owner : sandbox != NULL ? sandbox->settings.owner : "";
    const char *agent = exec != NULL ? exec->agent : sandbox != NULL ? sandbox->settings.agent : "";

    *event = (struct event){.seq = engine->event_seq, .time_ms = engine_wall_ms(), .kind = kind, .value = value};
    event->reason = sandbox != NULL ? sandbox->reason : SANDBOX_NO_REASON;
    (void)snprintf(event->sandbox, sizeof event->sandbox, "%s",
                   exec != NULL      ? exec->sandbox_id
                   : sandbox != NULL ? sandbox->id
                                     : "");
    (void)snprintf(event->exec, sizeof event->exec, "%s", exec != NULL ? exec->id : "");
    (void)snprintf(event->owner, sizeof event->owner, "%s", owner != NULL ? owner : "");
    (void)snprintf(event->agent, sizeof event->agent, "%.63s", agent != NULL ? agent : "");
    tell_all(engine);
}

int events_subscribe(struct engine *engine, uint64_t after, const char *owner, event_news news, void *data,
                     struct event_subscriber **ret_subscriber, struct error *err)
{
    if (owner != NULL && strlen(owner) >= ENGINE_OWNER_SIZE)
        return error_set(err, ERROR_INVALID, 0, "no such owner");
    struct event_subscriber *subscriber = calloc(1, sizeof *subscriber);
    if (subscriber == NULL)
        return error_set(err, ERROR_SYSTEM, ENOMEM, "subscribing to events");
    subscriber->engine = engine;
    subscriber->seq = after < engine->event_seq ? after : engine->event_seq;
    subscriber->has_owner = owner != NULL;
    (void)snprintf(subscriber->owner, sizeof subscriber->owner, "%s", owner != NULL ? owner : "");
    subscriber->news = news;
    subscriber->data = data;
    subscriber->next = engine->subscribers;
    engine->subscribers = subscriber;
    *ret_subscriber = subscriber;
    return 0;
}

int events_next(struct event_subscriber *subscriber, struct event *ret_event)
{
    const struct engine *engine = subscriber->engine;

    if (subscriber->seq + engine->events_room < engine->event_seq)
        subscriber->seq = engine->event_seq - engine->events_room;
    while (subscriber->seq < engine->event_seq) {
        const struct event *event = &engine->events[++subscriber->seq % engine->events_room];
        if (subscriber->has_owner && strcmp(subscriber->owner, event->owner) != 0)
            continue;
        *ret_event = *event;
        return 1;
    }
    return 0;
}

void events_unsubscribe(struct event_subscriber *subscriber)
{
    struct event_subscriber **at = &subscriber->engine->subscribers;

    subscriber->is_free = true;
    if (subscriber->is_told)
        return; /* it is freed when its callback returns */
    while (*at != subscriber)
        at = &(*at)->next;
    *at = subscriber->next;
    free(subscriber);
}
