/* Everything that happens, as server-sent events. A `run` key sees what concerns its own sandboxes. */
#include "gateway/engine/events.h"

#include "gateway/net/sse.h"
#include "gateway/surface/call.h"
#include "gateway/surface/pulse.h"
#include "gateway/surface/routes.h"

#include <inttypes.h>
#include <stdio.h>

enum { EVENT_BYTES = 4096, ID_TEXT = 24 };

struct watch {
    struct surface_stream stream;
    struct call *call;
    uint64_t after;
    bool is_waiting;
    struct event_subscriber *subscriber;
    struct pulse *pulse;
};

static void stop(struct watch *watch)
{
    surface_remove_stream(&watch->stream);
    events_unsubscribe(watch->subscriber);
    pulse_stop(watch->pulse);
    watch->call->request->events = NULL;
}

static void gone(struct request *request)
{
    struct call *call = call_of(request);

    stop(call->state);
    call_abort(call);
}

static void end_stream(struct surface_stream *stream)
{
    struct watch *watch = (struct watch *)(void *)((char *)stream - offsetof(struct watch, stream));

    stop(watch);
    call_finish(watch->call);
}

static int send_event(struct watch *watch, const struct event *event)
{
    struct writer writer = writer_init(EVENT_BYTES);
    char id[ID_TEXT];

    (void)snprintf(id, sizeof id, "%" PRIu64, event->seq);
    writer_open(&writer, NULL, '{');
    writer_number(&writer, "seq", (int64_t)event->seq);
    writer_time(&writer, "time", event->time_ms);
    writer_text(&writer, "type", event_kind_name(event->kind));
    writer_text(&writer, "sandbox_id", *event->sandbox != '\0' ? event->sandbox : NULL);
    writer_text(&writer, "exec_id", *event->exec != '\0' ? event->exec : NULL);
    writer_text(&writer, "agent", *event->agent != '\0' ? event->agent : NULL);
    if (event->kind == EVENT_SANDBOX_ENDED)
        writer_text(&writer, "reason", sandbox_reason_name(event->reason));
    if (event->kind == EVENT_EXEC_ENDED)
        writer_number(&writer, "exit_code", event->value);
    writer_close(&writer, '}');
    int r = writer_end(&writer);
    if (r == 0)
        r = sse_event(watch->call->request, event_kind_name(event->kind), id, writer.buf.data, writer.buf.length);
    writer_release(&writer);
    return r;
}

static void pump(struct watch *watch)
{
    struct event event;
    int r = 1;

    while (r == 1 && events_next(watch->subscriber, &event) == 1) {
        r = send_event(watch, &event);
        watch->is_waiting = r == 0;
    }
    if (r < 0) {
        stop(watch);
        call_abort(watch->call);
    }
}

static void news(void *data, struct event_subscriber *subscriber __attribute__((unused)))
{
    struct watch *watch = data;

    if (!watch->is_waiting)
        pump(watch);
}

static void drain(struct request *request)
{
    struct watch *watch = call_of(request)->state;

    watch->is_waiting = false;
    pump(watch);
}

static void beat(void *data)
{
    struct watch *watch = data;

    /* After an error `gone` does not come any more. */
    if (!watch->is_waiting && sse_heartbeat(watch->call->request) < 0)
        gone(watch->call->request);
}

static void begin(struct call *call)
{
    static const struct request_events request_events = {.drain = drain, .gone = gone};
    struct watch *watch = call->state;
    struct error err = {0};

    if (events_subscribe(call->surface->options.engine, watch->after, call_owner(call), news, watch, &watch->subscriber,
                         &err) < 0) {
        call_fail(call, &err);
        return;
    }
    call->request->events = &request_events;
    watch->stream.end = end_stream;
    surface_add_stream(call->surface, &watch->stream);
    watch->pulse = pulse_start(call->surface->options.loop, PULSE_MS, beat, watch);
    sse_start(call->request);
    if (call->request->is_gone) {
        gone(call->request);
        return;
    }
    /* So that the client sees the answer's head at once. */
    if (sse_heartbeat(call->request) < 0)
        gone(call->request);
    else
        pump(watch);
}

void events_get(struct request *request)
{
    static const char *const parameters[] = {"after", NULL};
    struct call *call = call_of(request);
    struct watch *watch = call_alloc(call, sizeof *watch);

    if (watch == NULL)
        return;
    *watch = (struct watch){.call = call, .after = UINT64_MAX};
    call->state = watch;
    if (call_query_only(call, parameters) == 0 && call_query_number(call, "after", 0, INT64_MAX, &watch->after) == 0 &&
        call_last_event(call, &watch->after) == 0)
        call_record(call, begin);
}
