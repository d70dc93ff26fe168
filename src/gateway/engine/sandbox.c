/*
 * What callers do with sandboxes: make or claim one, find one, look at it; and adoption after a restart.
 */
#include "gateway/engine/internal.h"

#include "base/cleanup.h"
#include "gateway/engine/name.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ORDER_SHIFT = 12,
    RELEASED_BEFORE = 64, /* channels around the last one that is known, at an adoption */
    RELEASED_AFTER = ENGINE_EXECS_PER_SANDBOX,
    STARTS_BEFORE = 2, /* the last gateway may have ended before it adopted anything */
};

/* Callers see it no more. */
void sandbox_unlist(struct sandbox *sandbox)
{
    struct engine *engine = sandbox->engine;

    if (sandbox->is_counted) {
        sandbox->is_counted = false;
        engine->live--;
        engine->in_use -= sandbox->was_pooled;
    }
    if (!sandbox->is_listed)
        return;
    sandbox->is_listed = false;
    table_remove(&engine->sandboxes, &sandbox->by_id);
    *(sandbox->older != NULL ? &sandbox->older->newer : &engine->oldest) = sandbox->newer;
    *(sandbox->newer != NULL ? &sandbox->newer->older : &engine->newest) = sandbox->older;
}

static void list(struct sandbox *sandbox)
{
    struct engine *engine = sandbox->engine;

    /* Goes up, also over a restart when they are adopted in their order. */
    uint64_t order = sandbox->created_ms << ORDER_SHIFT;
    sandbox->order = order > engine->last_order ? order : engine->last_order + 1;
    engine->last_order = sandbox->order;
    sandbox->is_listed = true;
    table_add(&engine->sandboxes, &sandbox->by_id, table_hash_text(sandbox->id));
    sandbox->older = engine->newest;
    sandbox->newer = NULL;
    *(engine->newest != NULL ? &engine->newest->newer : &engine->oldest) = sandbox;
    engine->newest = sandbox;
    if (!sandbox->is_counted) {
        sandbox->is_counted = true;
        engine->live++;
        engine->in_use += sandbox->was_pooled;
    }
}

static void limits_are_set(struct sandbox *sandbox, struct request *request, const struct wire_message *answer,
                           const struct error *err)
{
    (void)answer;
    if (err == NULL) {
        sandbox->limits = request->limits;
        sandbox_is_made(sandbox);
        return;
    }
    sandbox->failure = *err;
    sandbox_finish(sandbox, SANDBOX_CRASHED);
}

static bool is_same_limits(const struct sandbox_limits *a, const struct sandbox_limits *b)
{
    return a->memory_bytes == b->memory_bytes && a->processes == b->processes && a->cpu_milli == b->cpu_milli &&
           a->cpu_weight == b->cpu_weight;
}

/* One of the pool becomes the caller's: made anew, as far as anybody can tell. */
static int take_over(struct sandbox *sandbox, struct error *err)
{
    const struct sandbox_limits *limits = &sandbox->settings.limits;
    struct wire_message message = {.type = WIRE_LIMITS,
                                   .limits = {.sandbox = sandbox->number,
                                              .memory_bytes = limits->memory_bytes,
                                              .processes = limits->processes,
                                              .cpu_milli = limits->cpu_milli,
                                              .cpu_weight = limits->cpu_weight}};

    sandbox->was_pooled = true;
    sandbox->state = SANDBOX_CREATING;
    sandbox->born_at = uv_now(sandbox->engine->loop);
    sandbox->created_ms = engine_wall_ms();
    if (is_same_limits(&sandbox->limits, limits))
        return 0;
    struct request *request = request_ask(sandbox, &message, err);
    if (request == NULL)
        return -err->err;
    request->answered = limits_are_set;
    request->limits = *limits;
    return 0;
}

static int check_creation(struct engine *engine, struct error *err)
{
    if (engine->is_draining || !engine->keeper.is_open)
        return error_set(err, ERROR_SYSTEM, ESHUTDOWN, "the service is ending: no new sandboxes");
    if (engine->live >= engine->options.sandboxes_max)
        return error_set(err, ERROR_LIMIT, EAGAIN, "there are %u sandboxes, as many as are allowed", engine->live);
    return engine_check_recording(engine, err);
}

int sandbox_create(struct engine *engine, const struct sandbox_settings *settings, sandbox_done done, void *data,
                   struct sandbox **ret_sandbox, struct error *err)
{
    struct sandbox_settings copy = {0};
    _cleanup_free_ void *block = NULL;
    char id[ENGINE_ID_SIZE];
    int r = check_creation(engine, err);

    if (r == 0)
        r = settings_copy(settings, &copy, &block, err);
    if (r < 0)
        return r;
    r = name_make("sb", id);
    if (r < 0)
        return error_set(err, ERROR_SYSTEM, -r, "making an id");
    struct sandbox *sandbox = pool_claim(engine, &settings->class);
    bool is_claimed = sandbox != NULL;
    if (!is_claimed)
        sandbox = sandbox_make(engine, &settings->class, &settings->limits, err);
    if (sandbox == NULL)
        return -err->err;
    sandbox->settings = copy;
    sandbox->block = TAKE_PTR(block);
    (void)snprintf(sandbox->id, sizeof sandbox->id, "%s", id);
    sandbox->expires_at = copy.lifetime_ms != 0 ? uv_now(engine->loop) + copy.lifetime_ms : 0;
    r = is_claimed ? take_over(sandbox, err) : 0;
    if (r < 0) {
        sandbox_finish(sandbox, SANDBOX_CRASHED);
        return r;
    }
    sandbox->create_done = done;
    sandbox->create_data = data;
    engine->creating++;
    list(sandbox);
    event_publish(engine, EVENT_SANDBOX_CREATED, sandbox, NULL, is_claimed);
    if (is_claimed && sandbox->requests == NULL)
        sandbox_is_made(sandbox);
    sandbox_arm(sandbox);
    *ret_sandbox = sandbox;
    return 0;
}

static bool is_owned_by(const struct sandbox *sandbox, const char *owner)
{
    return owner == NULL || strcmp(sandbox->settings.owner, owner) == 0;
}

struct sandbox *sandbox_find(struct engine *engine, const char *id, const char *owner)
{
    struct table_entry *entry = NULL;
    uint64_t hash = table_hash_text(id);

    while ((entry = table_next(&engine->sandboxes, hash, entry)) != NULL) {
        struct sandbox *sandbox = TABLE_OWNER(struct sandbox, by_id, entry);
        if (strcmp(sandbox->id, id) == 0)
            return is_owned_by(sandbox, owner) ? sandbox : NULL;
    }
    return NULL;
}

struct sandbox *sandbox_after(struct engine *engine, uint64_t after, const char *owner)
{
    struct sandbox *sandbox = engine->oldest;

    while (sandbox != NULL && (sandbox->order <= after || !is_owned_by(sandbox, owner)))
        sandbox = sandbox->newer;
    return sandbox;
}

struct sandbox *sandbox_next(struct engine *engine, const struct sandbox *current)
{
    return current == NULL ? engine->oldest : current->newer;
}

void sandbox_get(const struct sandbox *sandbox, struct sandbox_info *ret_info)
{
    *ret_info = (struct sandbox_info){
        .id = sandbox->id,
        .number = sandbox->number,
        .order = sandbox->order,
        .state = sandbox->state,
        .reason = sandbox->reason,
        .settings = &sandbox->settings,
        .created_ms = sandbox->created_ms,
        .expires_ms = sandbox->settings.lifetime_ms != 0 ? sandbox->created_ms + sandbox->settings.lifetime_ms : 0,
        .last_used_ms = sandbox->last_used_ms,
        .executed = sandbox->executed,
        .running = sandbox->exec_count,
        .features = sandbox->link.guest.features,
        .was_pooled = sandbox->was_pooled,
    };
}

static void release_channel(struct sandbox *sandbox, uint64_t id)
{
    struct wire_message message = {.type = WIRE_RELEASE, .release = {.channel = id}};

    ignore_result(sandbox_say(sandbox, &message));
}

static bool is_among(uint64_t id, const uint64_t *known, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (known[i] == id)
            return true;
    }
    return false;
}

/*
 * What earlier gateways left open and nobody knows of: files, execs that ended and were not released, execs that
 * were started and never recorded. Init ignores what it does not know. Those that were recorded as running are left.
 */
void sandbox_release_unknown(struct sandbox *sandbox, const uint64_t *known, size_t count)
{
    uint32_t start = sandbox->engine->options.start;
    uint64_t last = sandbox->last_channel;

    for (uint32_t before = 1; before <= STARTS_BEFORE && before < start; before++) {
        uint32_t its_start = start - before;
        uint32_t middle = last >> 32 == its_start ? (uint32_t)(last & INT32_MAX) : 0;
        for (uint32_t slot = 0; slot < FILES_AT_ONCE; slot++)
            release_channel(sandbox, guest_channel_id(its_start, true, slot));
        for (uint32_t i = middle > RELEASED_BEFORE ? middle - RELEASED_BEFORE : 1; i <= middle + RELEASED_AFTER; i++) {
            uint64_t id = guest_channel_id(its_start, false, i);
            if (!is_among(id, known, count))
                release_channel(sandbox, id);
        }
    }
}

int sandbox_adopt(struct engine *engine, const struct sandbox_adopted *adopted, struct sandbox **ret_sandbox,
                  struct error *err)
{
    _cleanup_fd_ int guest_fd = adopted->guest_fd;
    struct sandbox_settings copy = {0};
    _cleanup_free_ void *block = NULL;
    uint64_t wall_ms = engine_wall_ms();
    int r = settings_copy(adopted->settings, &copy, &block, err);

    if (r < 0)
        return r;
    if (adopted->state != SANDBOX_READY && adopted->state != SANDBOX_PAUSED && adopted->state != SANDBOX_STOPPED)
        return error_set(err, ERROR_INVALID, 0, "a sandbox that is %s can't be adopted",
                         sandbox_state_name(adopted->state));
    struct sandbox *sandbox = sandbox_allocate(engine, adopted->number);
    if (sandbox == NULL)
        return error_set(err, ERROR_SYSTEM, ENOMEM, "adopting a sandbox");
    sandbox->settings = copy;
    sandbox->limits = copy.limits;
    sandbox->block = TAKE_PTR(block);
    (void)snprintf(sandbox->id, sizeof sandbox->id, "%s", adopted->id);
    sandbox->is_created = true;
    sandbox->is_recorded = true;
    sandbox->created_ms = adopted->created_ms;
    sandbox->last_channel = adopted->last_channel;
    sandbox->state = adopted->state;
    if (copy.lifetime_ms != 0) {
        uint64_t end_ms = adopted->created_ms + copy.lifetime_ms;
        sandbox->expires_at = uv_now(engine->loop) + (end_ms > wall_ms ? end_ms - wall_ms : 1);
    }
    r = sandbox_open_link(sandbox, TAKE_FD(guest_fd));
    if (r < 0) {
        sandbox_give_up(sandbox);
        return error_set(err, ERROR_SYSTEM, -r, "opening the guest link");
    }
    sandbox->link.guest.state = WIRE_IN_RUNNING;
    sandbox->link.guest.features = adopted->features;
    sandbox->link.guest.channels_max = GUEST_CHANNELS_MAX;
    sandbox->is_unsettled = true;
    /* What init says of an exec that is not adopted yet would be taken for left over, and the exec be ended. */
    guest_link_hold(&sandbox->link, true);
    list(sandbox);
    sandbox_arm(sandbox);
    *ret_sandbox = sandbox;
    return 0;
}

void sandbox_disown(struct engine *engine, uint64_t number, int guest_fd)
{
    struct sandbox *sandbox = sandbox_of_number(engine, number) == NULL ? sandbox_allocate(engine, number) : NULL;

    if (sandbox != NULL) {
        sandbox->is_created = true;
        sandbox_finish(sandbox, SANDBOX_DRAINED);
    }
    close_fd(&guest_fd);
}
