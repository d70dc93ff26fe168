#include "gateway/engine/internal.h"

#include "base/cleanup.h"
#include "gateway/engine/pool_plan.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

enum { YOUNG_MS = 20, ENDED_MS = 3, WARM_LIMIT_MS = 20000 };

static void end_idle(struct pool_class *class)
{
    struct sandbox *sandbox = class->sandboxes;

    sandbox_finish(sandbox, SANDBOX_DRAINED); /* comes back to pool_lost() */
}

static struct sandbox *take_first(struct pool_class *class)
{
    struct sandbox *sandbox = class->sandboxes;

    if (sandbox == NULL)
        return NULL;
    class->sandboxes = sandbox->pool_next;
    class->idle--;
    sandbox->pool_next = NULL;
    sandbox->pool = NULL;
    return sandbox;
}

struct sandbox *pool_claim(struct engine *engine, const struct sandbox_class *wanted)
{
    for (size_t i = 0; i < engine->pool_count; i++) {
        struct pool_class *class = &engine->pool[i];
        if (!settings_is_same_class(&class->settings.class, wanted))
            continue;
        struct sandbox *sandbox = take_first(class);
        engine->pool_claimed += sandbox != NULL;
        engine->pool_missed += sandbox == NULL;
        engine->pool_last_at = uv_now(engine->loop);
        pool_turn(engine);
        return sandbox;
    }
    return NULL;
}

/*
 * The first command in a sandbox looks up names and pages that the second finds. So each runs one before anybody waits
 * for it. How that ends does not matter: a template need not have it.
 */
void pool_made(struct sandbox *sandbox)
{
    const struct sandbox_class *class = &sandbox->pool->settings.class;
    static const char strings[] = "/bin/sh\0-c\0/bin/true\0PATH=/usr/bin:/bin";
    struct wire_message message = {.type = WIRE_EXEC,
                                   .exec = {.flags = WIRE_EXEC_COLLECT,
                                            .filter = class->filter,
                                            .uid = class->user,
                                            .gid = class->user,
                                            .stdout_cap = 1,
                                            .stderr_cap = 1,
                                            .folder = wire_str("/"),
                                            .argc = 3,
                                            .envc = 1,
                                            .strings = {.data = (const uint8_t *)strings, .length = sizeof strings}}};

    message.exec.channel = guest_channel_id(sandbox->engine->options.start, false, ++sandbox->last_count);
    sandbox->warm_up =
        (struct guest_channel){.id = message.exec.channel, .has_errors = true, .stdin_closed = true, .caps = {1, 1}};
    guest_open(&sandbox->link.guest, &sandbox->warm_up);
    sandbox->expires_at = uv_now(sandbox->engine->loop) + WARM_LIMIT_MS;
    sandbox_arm(sandbox);
    ignore_result(sandbox_say(sandbox, &message));
}

void pool_warmed(struct sandbox *sandbox)
{
    struct engine *engine = sandbox->engine;
    struct wire_message release = {.type = WIRE_RELEASE, .release = {.channel = sandbox->warm_up.id}};
    struct pool_class *class = sandbox->pool;

    ignore_result(sandbox_say(sandbox, &release));
    if (class == NULL || sandbox->state != SANDBOX_READY)
        return;
    sandbox->expires_at = 0;
    sandbox_arm(sandbox);
    sandbox->pool_next = class->sandboxes;
    class->sandboxes = sandbox;
    class->making--;
    class->idle++;
    engine->pool_failures = 0;
    engine->pool_last_at = uv_now(engine->loop);
    if (class->idle == class->min_idle)
        event_publish(engine, EVENT_POOL_FILLED, NULL, NULL, class->idle);
    pool_turn(engine);
}

void pool_lost(struct sandbox *sandbox)
{
    struct engine *engine = sandbox->engine;
    struct pool_class *class = TAKE_PTR(sandbox->pool);
    struct sandbox **at = &class->sandboxes;

    while (*at != NULL && *at != sandbox)
        at = &(*at)->pool_next;
    if (*at != NULL) {
        *at = sandbox->pool_next;
        class->idle--;
    } else {
        class->making--;
        engine->pool_failures++;
        engine->pool_last_at = uv_now(engine->loop);
    }
    pool_turn(engine);
}

static void make_one(struct engine *engine, struct pool_class *class)
{
    struct error err = {0};
    struct sandbox *sandbox = sandbox_make(engine, &class->settings.class, &class->settings.limits, &err);

    if (sandbox == NULL) {
        engine->pool_failures++;
        engine->pool_last_at = uv_now(engine->loop);
        return;
    }
    sandbox->pool = class;
    class->making++;
}

static void timer_fired(uv_timer_t *timer)
{
    pool_turn(timer->data);
}

static bool is_lively(const struct engine *engine)
{
    uint64_t now = uv_now(engine->loop);

    return (engine->running > 0 && now - engine->exec_started_at < YOUNG_MS) || now - engine->exec_ended_at < ENDED_MS;
}

static struct pool_decision decide(const struct engine *engine)
{
    struct pool_plan_class classes[POOL_CLASSES_MAX];
    struct pool_plan plan = {.is_draining = engine->is_draining,
                             .waiting = engine->creating + (engine->keeper.outbox.first != NULL),
                             .running = engine->running,
                             .is_lively = is_lively(engine),
                             .failures = engine->pool_failures,
                             .last_ms = engine->pool_last_at,
                             .now_ms = uv_now(engine->loop)};

    for (size_t i = 0; i < engine->pool_count; i++) {
        const struct pool_class *class = &engine->pool[i];
        classes[i] = (struct pool_plan_class){class->min_idle, class->max_idle, class->idle, class->making};
        plan.making += class->making;
    }
    return pool_decide(&plan, classes, engine->pool_count);
}

/* Something has changed: what is to be done about it? */
void pool_turn(struct engine *engine)
{
    struct pool_decision decision = {.what = POOL_NOTHING};

    if (!engine->pool_is_running || engine->pool_is_turning || engine->is_closing || !engine->keeper.is_open)
        return;
    engine->pool_is_turning = true;
    do {
        decision = decide(engine);
        if (decision.what == POOL_MAKE)
            make_one(engine, &engine->pool[decision.class]);
        else if (decision.what == POOL_END)
            end_idle(&engine->pool[decision.class]);
    } while (decision.what == POOL_MAKE || decision.what == POOL_END);
    engine->pool_is_turning = false;
    if (decision.what == POOL_WAIT)
        ignore_result(uv_timer_start(&engine->pool_timer, timer_fired, decision.wait_ms, 0));
}

size_t pool_drain(struct engine *engine)
{
    size_t count = 0;
    bool was_turning = engine->pool_is_turning;

    engine->pool_is_turning = true; /* all of them go before the first new one is made */
    for (size_t i = 0; i < engine->pool_count; i++) {
        for (; engine->pool[i].idle > 0; count++)
            end_idle(&engine->pool[i]);
    }
    engine->pool_is_turning = was_turning;
    event_publish(engine, EVENT_POOL_DRAINED, NULL, NULL, (int64_t)count);
    engine->pool_last_at = uv_now(engine->loop);
    pool_turn(engine);
    return count;
}

static void release_class(struct pool_class *class)
{
    if (class->block != NULL) /* else it was never set */
        close_fd(&class->settings.class.root_fd);
    free(class->block);
    *class = (struct pool_class){0};
}

void pool_release(struct engine *engine)
{
    for (size_t i = 0; i < engine->pool_count; i++)
        release_class(&engine->pool[i]);
    engine->pool_count = 0;
}

/* End all that is pooled or on its way into the pool. */
static void end_all(struct engine *engine)
{
    engine->pool_is_turning = true;
    for (size_t i = 0; i < engine->pool_count; i++) {
        while (engine->pool[i].idle > 0)
            end_idle(&engine->pool[i]);
    }
    for (size_t i = 0; i < engine->numbers.room; i++) {
        struct table_entry *next;
        for (struct table_entry *entry = engine->numbers.buckets[i]; entry != NULL; entry = next) {
            struct sandbox *sandbox = TABLE_OWNER(struct sandbox, by_number, entry);
            next = entry->next;
            if (sandbox->pool != NULL)
                sandbox_finish(sandbox, SANDBOX_DRAINED);
        }
    }
    engine->pool_is_turning = false;
    engine->pool_failures = 0;
}

static int set_class(struct pool_class *class, const struct pool_target *target, struct error *err)
{
    struct sandbox_settings settings = {.class = target->class, .limits = target->limits};

    if (target->max_idle > POOL_IDLE_MAX || target->min_idle > target->max_idle)
        return error_set(err, ERROR_INVALID, 0, "a pool keeps at most %d, and no fewer than its least", POOL_IDLE_MAX);
    int r = settings_copy(&settings, &class->settings, &class->block, err);
    if (r < 0)
        return r;
    class->min_idle = target->min_idle;
    class->max_idle = target->max_idle;
    if (target->class.root_fd < 0)
        return 0;
    class->settings.class.root_fd = fcntl(target->class.root_fd, F_DUPFD_CLOEXEC, 0);
    return class->settings.class.root_fd < 0 ? error_errno(err, "keeping a template's folder") : 0;
}

int pool_set(struct engine *engine, const struct pool_target *targets, size_t count, struct error *err)
{
    int r = 0;

    if (count > POOL_CLASSES_MAX)
        return error_set(err, ERROR_LIMIT, 0, "a pool has at most %d classes", POOL_CLASSES_MAX);
    struct pool_class *classes = calloc(POOL_CLASSES_MAX, sizeof *classes);
    if (classes == NULL)
        return error_set(err, ERROR_SYSTEM, ENOMEM, "setting the pool's classes");
    for (size_t i = 0; r == 0 && i < count; i++)
        r = set_class(&classes[i], &targets[i], err);
    if (r < 0) {
        for (size_t i = 0; i < count; i++)
            release_class(&classes[i]);
    } else {
        end_all(engine);
        pool_release(engine);
        memcpy(engine->pool, classes, sizeof engine->pool);
        engine->pool_count = count;
        pool_turn(engine);
    }
    free(classes);
    return r;
}

void pool_figures(const struct engine *engine, struct pool_figures *ret_figures)
{
    *ret_figures = (struct pool_figures){.classes = (uint32_t)engine->pool_count,
                                         .in_use = engine->in_use,
                                         .claimed = engine->pool_claimed,
                                         .missed = engine->pool_missed};
    for (size_t i = 0; i < engine->pool_count; i++) {
        ret_figures->idle += engine->pool[i].idle;
        ret_figures->making += engine->pool[i].making;
        ret_figures->min_idle += engine->pool[i].min_idle;
        ret_figures->max_idle += engine->pool[i].max_idle;
    }
}
