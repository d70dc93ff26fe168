/*
 * Theory of operation. Everything happens in callbacks of the loop: the keeper's messages, each init's frames, the
 * recorder's answers, timers. A tick once a second looks after what has no timer of its own: results that expire,
 * followers that stall, inits that read nothing, ends that the keeper has not confirmed.
 */
#include "gateway/engine/internal.h"

#include "base/cleanup.h"
#include "base/fd.h"

#include <stdlib.h>
#include <time.h>

uint64_t engine_wall_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000U + (uint64_t)now.tv_nsec / 1000000U;
}

int engine_check_recording(const struct engine *engine, struct error *err)
{
    /* After a rest one is let through, to see whether it works again. */
    if (!engine->has_record_failed || uv_now(engine->loop) - engine->record_failed_at >= ENGINE_RECORD_REST_MS)
        return 0;
    return error_set(err, ERROR_SYSTEM, EIO, "nothing can be recorded at the moment, so nothing is started");
}

static void free_engine(struct engine *engine)
{
    while (engine->subscribers != NULL) {
        struct event_subscriber *subscriber = engine->subscribers;
        engine->subscribers = subscriber->next;
        free(subscriber);
    }
    pool_release(engine);
    table_release(&engine->sandboxes);
    table_release(&engine->numbers);
    table_release(&engine->execs);
    free(engine->events);
    free(engine->spare);
    free(engine);
}

/* A handle is closed or a record answered: is that the last the engine was waiting for? */
void engine_handle_closed(struct engine *engine)
{
    if (!engine->is_closing || engine->handles > 0 || engine->records > 0)
        return;
    engine_done closed = engine->closed;
    void *data = engine->closed_data;
    free_engine(engine);
    if (closed != NULL)
        closed(data);
}

static void own_handle_closed(uv_handle_t *handle)
{
    struct engine *engine = handle->data;

    engine->handles--;
    engine_handle_closed(engine);
}

void engine_check_drained(struct engine *engine)
{
    /* An end that is not recorded yet would never be. */
    if (!engine->is_draining || engine->numbers.count > 0 || engine->records > 0 || engine->waiting_first != NULL ||
        engine->is_closing)
        return;
    engine_done drained = TAKE_PTR(engine->drained);
    if (drained != NULL)
        drained(engine->drained_data);
}

static void keeper_heard(void *owner, const struct wire_message *message, int *fds, size_t fd_count)
{
    struct engine *engine = owner;
    bool is_about_one = message->type >= WIRE_CREATED && message->type <= WIRE_DONE;
    /* All of these start with it. */
    struct sandbox *sandbox = is_about_one ? sandbox_of_number(engine, message->created.sandbox) : NULL;

    if (sandbox != NULL) {
        sandbox->refs++;
        sandbox_heard(sandbox, message, fds, fd_count);
        sandbox_unref(sandbox);
    } else if (!is_about_one && engine->options.heard != NULL) {
        engine->options.heard(engine->options.data, message, fds, fd_count);
    } else {
        fd_close_many(fds, fd_count);
    }
}

static void keeper_lost(void *owner)
{
    struct engine *engine = owner;

    if (engine->options.lost != NULL)
        engine->options.lost(engine->options.data);
}

int engine_tell_keeper(struct engine *engine, const struct wire_message *message)
{
    int r = keeper_link_ask(&engine->keeper, message, -1);

    if (r == 0)
        keeper_link_answered(&engine->keeper);
    return r;
}

/* Each sandbox there is; it may go meanwhile. */
static void for_each(struct engine *engine, void (*visit)(struct sandbox *sandbox, uint64_t now))
{
    uint64_t now = uv_now(engine->loop);

    for (size_t i = 0; i < engine->numbers.room; i++) {
        struct table_entry *next;
        for (struct table_entry *entry = engine->numbers.buckets[i]; entry != NULL; entry = next) {
            struct sandbox *sandbox = TABLE_OWNER(struct sandbox, by_number, entry);
            next = entry->next;
            visit(sandbox, now);
        }
    }
}

static void tick(uv_timer_t *timer)
{
    struct engine *engine = timer->data;

    for_each(engine, sandbox_tick);
    exec_expire(engine);
    pool_turn(engine);
}

static int start_timers(struct engine *engine)
{
    int r = uv_timer_init(engine->loop, &engine->tick);

    if (r == 0)
        r = uv_timer_init(engine->loop, &engine->pool_timer);
    if (r == 0)
        r = uv_timer_init(engine->loop, &engine->again);
    engine->tick.data = engine;
    engine->pool_timer.data = engine;
    engine->again.data = engine;
    engine->handles += 3;
    if (r == 0)
        r = uv_timer_start(&engine->tick, tick, ENGINE_TICK_MS, ENGINE_TICK_MS);
    return r;
}

static int set_up(struct engine *engine)
{
    int r = table_init(&engine->sandboxes);

    if (r == 0)
        r = table_init(&engine->numbers);
    if (r == 0)
        r = table_init(&engine->execs);
    engine->events_room = engine->options.events_kept != 0 ? engine->options.events_kept : ENGINE_EVENTS_KEPT;
    engine->events = calloc(engine->events_room, sizeof *engine->events);
    if (r == 0 && engine->events == NULL)
        r = -ENOMEM;
    if (r == 0)
        r = keeper_link_open(&engine->keeper, engine->loop, engine->options.keeper_fd);
    if (r < 0)
        return r;
    engine->keeper.poll.data = engine;
    engine->handles++;
    return start_timers(engine);
}

int engine_new(const struct engine_options *options, struct engine **ret_engine, struct error *err)
{
    struct engine *engine = calloc(1, sizeof *engine);

    if (engine == NULL || options->start == 0) {
        free(engine);
        return error_set(err, ERROR_SYSTEM, ENOMEM, "starting the engine");
    }
    engine->options = *options;
    if (engine->options.stall_ms == 0)
        engine->options.stall_ms = ENGINE_STALL_MS;
    engine->loop = options->loop;
    engine->recorder = options->recorder;
    engine->ended_end = &engine->ended_first;
    engine->waiting_end = &engine->waiting_first;
    budget_init(&engine->budget, options->ring_bytes_max);
    engine->keeper.frame = engine->frame;
    engine->keeper.owner = engine;
    engine->keeper.heard = keeper_heard;
    engine->keeper.lost = keeper_lost;
    int r = set_up(engine);
    if (r < 0) {
        free_engine(engine);
        return error_set(err, ERROR_SYSTEM, -r, "starting the engine");
    }
    *ret_engine = engine;
    return 0;
}

static void settle(struct sandbox *sandbox, uint64_t now)
{
    uint64_t known[ENGINE_EXECS_PER_SANDBOX];
    size_t count = 0;

    (void)now;
    if (!sandbox->is_unsettled)
        return;
    sandbox->is_unsettled = false;
    for (const struct exec *exec = sandbox->execs; exec != NULL && count < ENGINE_EXECS_PER_SANDBOX; exec = exec->next)
        known[count++] = exec->channel.id;
    sandbox_release_unknown(sandbox, known, count);
    guest_link_hold(&sandbox->link, false);
}

void engine_go(struct engine *engine)
{
    for_each(engine, settle);
    engine->pool_is_running = true;
    pool_turn(engine);
}

static void drain_one(struct sandbox *sandbox, uint64_t now)
{
    (void)now;
    sandbox_finish(sandbox, SANDBOX_DRAINED);
}

static void check_drained(uv_timer_t *timer)
{
    engine_check_drained(timer->data);
}

void engine_drain(struct engine *engine, engine_done done, void *data)
{
    engine->is_draining = true;
    engine->drained = done;
    engine->drained_data = data;
    for_each(engine, drain_one);
    /* There may be none: the answer comes from the loop all the same. The pool does not need the timer any more. */
    ignore_result(uv_timer_start(&engine->pool_timer, check_drained, 0, 0));
}

static void abandon(struct sandbox *sandbox, uint64_t now)
{
    (void)now;
    sandbox_abandon(sandbox);
}

void engine_close(struct engine *engine, engine_done closed, void *data)
{
    engine->is_closing = true;
    engine->closed = closed;
    engine->closed_data = data;
    engine->keeper.is_open = false;
    for_each(engine, abandon);
    while (engine->ended_first != NULL)
        exec_forget_oldest(engine);
    exec_abandon_waiting(engine);
    uv_close((uv_handle_t *)&engine->tick, own_handle_closed);
    uv_close((uv_handle_t *)&engine->pool_timer, own_handle_closed);
    uv_close((uv_handle_t *)&engine->again, own_handle_closed);
    keeper_link_close(&engine->keeper, own_handle_closed);
}

void engine_set_limits(struct engine *engine, uint32_t sandboxes_max, uint32_t execs_max)
{
    engine->options.sandboxes_max = sandboxes_max;
    engine->options.execs_max = execs_max;
}

void engine_figures(const struct engine *engine, struct engine_figures *ret_figures)
{
    *ret_figures = engine->totals;
    ret_figures->sandboxes = engine->live;
    ret_figures->execs = engine->running;
    ret_figures->execs_kept = engine->execs.count;
    ret_figures->result_bytes = engine->result_bytes;
    ret_figures->is_recording = !engine->has_record_failed;
    for (size_t i = 0; i < engine->pool_count; i++)
        ret_figures->pooled += engine->pool[i].idle + engine->pool[i].making;
}
