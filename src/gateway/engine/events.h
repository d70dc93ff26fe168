/*
 * events: everything that happens, in order, numbered, the newest kept in a ring; for whoever wants to watch.
 *
 * Used by the surfaces (SSE). A subscriber is told that there is news and takes it event by event; one that is slower
 * than the ring misses what has gone, and sees that by the numbers. Nothing waits for a subscriber.
 */
#pragma once

#include "gateway/engine/sandbox.h"

enum event_kind {
    EVENT_SANDBOX_CREATED,
    EVENT_SANDBOX_READY,
    EVENT_SANDBOX_FAILED,
    EVENT_SANDBOX_PAUSED,
    EVENT_SANDBOX_RESUMED,
    EVENT_SANDBOX_STOPPED,
    EVENT_SANDBOX_STARTED, /* after a stop */
    EVENT_SANDBOX_LIMITED, /* its limits were changed */
    EVENT_SANDBOX_ENDED,   /* with a reason */
    EVENT_SANDBOX_OOM,
    EVENT_EXEC_STARTED,
    EVENT_EXEC_ENDED,  /* value: its exit code */
    EVENT_POOL_FILLED, /* value: how many are idle */
    EVENT_POOL_DRAINED,
    EVENT_KINDS,
};

struct event {
    uint64_t seq; /* from 1 */
    uint64_t time_ms;
    enum event_kind kind;
    enum sandbox_reason reason;
    int64_t value;
    char sandbox[ENGINE_ID_SIZE]; /* "" when it is about none */
    char exec[ENGINE_ID_SIZE];
    char owner[64];
    char agent[64]; /* cut */
};

const char *event_kind_name(enum event_kind kind); /* such as "sandbox.ready" */

struct event_subscriber;
typedef void (*event_news)(void *data, struct event_subscriber *subscriber);

/* From the event after `after` on; UINT64_MAX: what happens from now on. `owner` NULL: everybody's, and the pool's. */
_must_use_ int events_subscribe(struct engine *engine, uint64_t after, const char *owner, event_news news, void *data,
                                struct event_subscriber **ret_subscriber, struct error *err);

/* 1, or 0 when there is none now. */
_must_use_ int events_next(struct event_subscriber *subscriber, struct event *ret_event);
void events_unsubscribe(struct event_subscriber *subscriber);
