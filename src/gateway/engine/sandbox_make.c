/*
 * A sandbox that is being made: memory, number, CREATE, and the timer that it has from then on.
 */
#include "gateway/engine/internal.h"

#include <stdlib.h>
#include <string.h>

enum {
    MAKE_LIMIT_MS = 20000,
    MAKE_ONLY_LIMIT_MS = 300000, /* the first list of programs reads through all of /usr */
    INODE_PER_BYTES = 4096,
    INODE_PER_IMAGE_BYTES = 16384,
    INODES_LEAST = 1024,
    STRINGS_MAX = 4096,
};

static void timer_fired(uv_timer_t *timer)
{
    struct sandbox *sandbox = timer->data;
    uint64_t now = uv_now(timer->loop);

    if (sandbox->state == SANDBOX_CREATING) {
        (void)error_set(&sandbox->failure, ERROR_SYSTEM, ETIMEDOUT, "waiting for the sandbox to be made");
        sandbox_finish(sandbox, SANDBOX_CRASHED);
        return;
    }
    if (sandbox->expires_at != 0 && now >= sandbox->expires_at) {
        sandbox_finish(sandbox, SANDBOX_EXPIRED);
        return;
    }
    bool is_idle = !sandbox->is_unsettled && sandbox->exec_count == 0 && sandbox->files == NULL &&
                   sandbox->state != SANDBOX_PAUSED;
    if (!is_idle)
        sandbox_used(sandbox);
    if (sandbox->settings.idle_timeout_ms != 0 && is_idle &&
        now >= sandbox->used_at + sandbox->settings.idle_timeout_ms)
        sandbox_finish(sandbox, SANDBOX_IDLE);
    else
        sandbox_arm(sandbox);
}

/* Only when it fires it is looked whether it was idle meanwhile: an exec need not touch the timer. */
void sandbox_arm(struct sandbox *sandbox)
{
    uint64_t now = uv_now(sandbox->engine->loop);
    uint64_t due = UINT64_MAX;

    if (sandbox->state == SANDBOX_CREATING)
        due = sandbox->born_at + (sandbox->is_slow ? MAKE_ONLY_LIMIT_MS : MAKE_LIMIT_MS);
    else if (sandbox->expires_at != 0)
        due = sandbox->expires_at;
    if (sandbox->state != SANDBOX_CREATING && sandbox->settings.idle_timeout_ms != 0 &&
        sandbox->used_at + sandbox->settings.idle_timeout_ms < due)
        due = sandbox->used_at + sandbox->settings.idle_timeout_ms;
    if (due == UINT64_MAX)
        ignore_result(uv_timer_stop(&sandbox->timer));
    else
        ignore_result(uv_timer_start(&sandbox->timer, timer_fired, due > now ? due - now : 0, 0));
}

void sandbox_used(struct sandbox *sandbox)
{
    sandbox->used_at = uv_now(sandbox->engine->loop);
    sandbox->last_used_ms = engine_wall_ms();
}

/* What is written into a CREATE. */
static int ask_for_it(struct sandbox *sandbox, const struct sandbox_class *class, struct error *err)
{
    uint64_t inodes = class->disk_inodes != 0
                          ? class->disk_inodes
                          : class->disk_bytes / (class->disk_is_image ? INODE_PER_IMAGE_BYTES : INODE_PER_BYTES);
    char only[STRINGS_MAX];
    struct wire_message message = {
        .type = WIRE_CREATE,
        .create = {.sandbox = sandbox->number,
                   .flags = (class->root_fd >= 0 ? WIRE_CREATE_FOLDER : 0U) |
                            (class->root_is_writable ? WIRE_CREATE_ROOT_RW : 0U) |
                            (class->disk_is_image ? WIRE_CREATE_IMAGE : 0U) | WIRE_CREATE_TERMINAL,
                   .memory_bytes = sandbox->limits.memory_bytes,
                   .disk_bytes = class->disk_bytes,
                   .disk_inodes = inodes < INODES_LEAST ? INODES_LEAST
                                  : inodes > INT32_MAX  ? INT32_MAX
                                                        : inodes,
                   .processes = sandbox->limits.processes,
                   .cpu_milli = sandbox->limits.cpu_milli,
                   .cpu_weight = sandbox->limits.cpu_weight,
                   .hostname = wire_str("sandbox"),
                   .user = class->user,
                   .only = {.data = only}},
    };

    if (class->template_name != NULL && strcmp(class->template_name, "host") != 0 && class->root_fd < 0) {
        message.create.flags |= WIRE_CREATE_FOLDER;
        message.create.template_name = wire_str(class->template_name);
    }

    for (const char *const *name = class->only; name != NULL && *name != NULL; name++) {
        size_t size = strlen(*name) + 1;
        if (size > sizeof only - message.create.only.length)
            return error_set(err, ERROR_LIMIT, E2BIG, "the list of programs is too long");
        memcpy(only + message.create.only.length, *name, size);
        message.create.only.length += (uint32_t)size;
        message.create.only.count++;
    }
    int r = keeper_link_ask(&sandbox->engine->keeper, &message, class->root_fd);
    return r < 0 ? error_set(err, ERROR_SYSTEM, -r, "asking for a sandbox") : 0;
}

/* With the references of the table and the timer. */
struct sandbox *sandbox_allocate(struct engine *engine, uint64_t number)
{
    struct sandbox *sandbox = calloc(1, sizeof *sandbox);

    if (sandbox == NULL)
        return NULL;
    sandbox->engine = engine;
    sandbox->refs = 2;
    sandbox->number = number;
    sandbox->link.fd = -1;
    sandbox->requests_end = &sandbox->requests;
    sandbox->settings.owner = "";
    sandbox->settings.agent = "";
    sandbox->born_at = uv_now(engine->loop);
    sandbox->created_ms = engine_wall_ms();
    sandbox_used(sandbox);
    ignore_result(uv_timer_init(engine->loop, &sandbox->timer));
    sandbox->timer.data = sandbox;
    sandbox->has_timer = true;
    engine->handles++;
    table_add(&engine->numbers, &sandbox->by_number, table_hash_number(number));
    return sandbox;
}

void sandbox_give_up(struct sandbox *sandbox)
{
    table_remove(&sandbox->engine->numbers, &sandbox->by_number);
    sandbox_release_handles(sandbox);
    sandbox_unref(sandbox);
}

struct sandbox *sandbox_make(struct engine *engine, const struct sandbox_class *class,
                             const struct sandbox_limits *limits, struct error *err)
{
    struct sandbox *sandbox = sandbox_allocate(engine, (uint64_t)engine->options.start << 32 | ++engine->last_number);

    if (sandbox == NULL) {
        (void)error_set(err, ERROR_SYSTEM, ENOMEM, "making a sandbox");
        return NULL;
    }
    sandbox->limits = *limits;
    sandbox->is_slow = class->only != NULL;
    if (ask_for_it(sandbox, class, err) < 0) {
        sandbox_give_up(sandbox);
        return NULL;
    }
    sandbox_arm(sandbox);
    return sandbox;
}
