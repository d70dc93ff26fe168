/*
 * Theory of operation. A sandbox comes into being by sandbox_make(), for a caller or for the pool: CREATE goes to the
 * keeper, CREATED brings the guest link, HELLO makes it ready. It ends by sandbox_finish(): callers find it no more,
 * its execs end at once with what they have, DESTROY goes to the keeper, and GONE, however much later, frees it. One
 * that ends by itself is concluded when GONE says why. What changes its state goes through the table in state.c.
 */
#include "gateway/engine/internal.h"

#include "base/cleanup.h"
#include "base/fd.h"
#include "wire/steps.h"

#include <stdio.h>
#include <stdlib.h>

void sandbox_handle_closed(uv_handle_t *handle)
{
    struct sandbox *sandbox = handle->data;
    struct engine *engine = sandbox->engine;

    sandbox_unref(sandbox);
    engine->handles--;
    engine_handle_closed(engine);
}

void sandbox_unref(struct sandbox *sandbox)
{
    if (--sandbox->refs > 0)
        return;
    free(sandbox->block);
    free(sandbox);
}

struct sandbox *sandbox_of_number(const struct engine *engine, uint64_t number)
{
    struct table_entry *entry = NULL;
    uint64_t hash = table_hash_number(number);

    while ((entry = table_next(&engine->numbers, hash, entry)) != NULL) {
        struct sandbox *sandbox = TABLE_OWNER(struct sandbox, by_number, entry);
        if (sandbox->number == number)
            return sandbox;
    }
    return NULL;
}

bool sandbox_enter(struct sandbox *sandbox, enum state_event event)
{
    return state_next(sandbox->state, event, &sandbox->state) == 0;
}

int sandbox_not_running(const struct sandbox *sandbox, struct error *err)
{
    return error_set(err, ERROR_INVALID, ESHUTDOWN, "sandbox %s is %s", sandbox->id,
                     sandbox_state_name(sandbox->state));
}

int sandbox_say(struct sandbox *sandbox, const struct wire_message *message)
{
    int r = guest_link_say(&sandbox->link, message);

    /* It reads nothing: what it was promised can't be told it any more. */
    if (r == -ENOBUFS)
        sandbox_misbehaved(sandbox);
    return r;
}

void sandbox_release_handles(struct sandbox *sandbox)
{
    if (sandbox->link.has_handle)
        guest_link_close(&sandbox->link, sandbox_handle_closed);
    if (sandbox->has_timer) {
        sandbox->has_timer = false;
        uv_close((uv_handle_t *)&sandbox->timer, sandbox_handle_closed);
    }
}

/* The first answer a caller gets: it is there, or it is not. */
static void answer_creation(struct sandbox *sandbox, const struct error *err)
{
    sandbox_done done = TAKE_PTR(sandbox->create_done);

    if (done == NULL)
        return;
    sandbox->engine->creating--;
    if (err == NULL)
        sandbox->engine->totals.created++;
    else
        sandbox->engine->totals.failed++;
    if (err != NULL)
        event_publish(sandbox->engine, EVENT_SANDBOX_FAILED, sandbox, NULL, err->err);
    done(sandbox->create_data, sandbox, err);
    pool_turn(sandbox->engine);
}

static void ended_is_recorded(struct record *record, int status)
{
    struct error err = {0};

    if (record->done == NULL)
        return;
    if (status < 0)
        (void)error_set(&err, ERROR_SYSTEM, -status, "recording the end of a sandbox");
    record->done(record->data, record->sandbox, status < 0 ? &err : NULL);
}

/* Its execs end, callers hear why, and it is written down. Once. */
static void conclude(struct sandbox *sandbox)
{
    struct error err = {0};

    if (sandbox->is_concluded)
        return;
    sandbox->is_concluded = true;
    guest_link_stop(&sandbox->link);
    while (sandbox->execs != NULL)
        exec_lost(sandbox->execs, sandbox->reason);
    file_lost_all(sandbox);
    sandbox_exec_ended(sandbox);
    if (sandbox->pool != NULL) {
        pool_lost(sandbox);
        return;
    }
    if (sandbox->create_done != NULL) {
        if (sandbox->failure.message[0] == '\0')
            (void)error_set(&sandbox->failure, ERROR_SYSTEM, 0, "the sandbox ended (%s) before it was ready",
                            sandbox_reason_name(sandbox->reason));
        err = sandbox->failure;
        answer_creation(sandbox, &err);
    }
    if (!sandbox->is_recorded)
        return; /* nobody ever heard of it */
    sandbox->engine->totals.ended++;
    event_publish(sandbox->engine, EVENT_SANDBOX_ENDED, sandbox, NULL, 0);
}

static void ask_for_end(struct sandbox *sandbox)
{
    struct wire_message message = {.type = WIRE_DESTROY, .destroy = {.sandbox = sandbox->number}};
    struct error err;

    if (!sandbox->is_created || sandbox->is_destroyed)
        return; /* CREATED comes first */
    sandbox->is_destroyed = request_ask(sandbox, &message, &err) != NULL;
}

void sandbox_start_ending(struct sandbox *sandbox, enum sandbox_reason reason)
{
    sandbox->reason = reason;
    sandbox->ended_ms = engine_wall_ms();
    sandbox->ended_at = uv_now(sandbox->engine->loop);
    if (sandbox->has_timer)
        ignore_result(uv_timer_stop(&sandbox->timer));
    sandbox_unlist(sandbox);
}

void sandbox_finish(struct sandbox *sandbox, enum sandbox_reason reason)
{
    bool was_told = sandbox->is_recorded;

    if (!sandbox_enter(sandbox, STATE_ENDED))
        return;
    sandbox_start_ending(sandbox, reason);
    ask_for_end(sandbox);
    conclude(sandbox);
    if (was_told)
        record_sandbox(sandbox, ended_is_recorded, NULL, NULL);
}

void sandbox_destroy(struct sandbox *sandbox, enum sandbox_reason reason, sandbox_done done, void *data)
{
    sandbox_finish(sandbox, reason);
    if (done != NULL)
        record_sandbox(sandbox, ended_is_recorded, done, data);
}

void sandbox_misbehaved(struct sandbox *sandbox)
{
    if (!state_is_live(sandbox->state))
        return;
    sandbox->engine->totals.hostile++;
    (void)error_set(&sandbox->failure, ERROR_PROTOCOL, EBADMSG, "init sent what it may not; the sandbox was ended");
    sandbox_finish(sandbox, SANDBOX_CRASHED);
}

/* Nothing is left of it. */
static void vanish(struct sandbox *sandbox)
{
    bool was_told = sandbox->is_recorded;
    struct error err = {0};

    if (state_is_live(sandbox->state) && sandbox->reason == SANDBOX_NO_REASON)
        sandbox_start_ending(sandbox, SANDBOX_CRASHED);
    (void)sandbox_enter(sandbox, STATE_VANISHED);
    sandbox_unlist(sandbox);
    conclude(sandbox);
    if (was_told)
        record_sandbox(sandbox, ended_is_recorded, NULL, NULL);
    (void)error_set(&err, ERROR_INVALID, ESHUTDOWN, "the sandbox has ended");
    request_fail_all(sandbox, &err);
    table_remove(&sandbox->engine->numbers, &sandbox->by_number);
    sandbox_release_handles(sandbox);
    struct engine *engine = sandbox->engine;
    sandbox_unref(sandbox);
    engine_check_drained(engine);
}

/* It ended by itself: what it said before comes first, then why. */
static void heard_gone(struct sandbox *sandbox, const struct wire_gone *gone)
{
    guest_link_drain(&sandbox->link);
    if (!sandbox->is_destroyed && !sandbox->is_concluded && sandbox->state != SANDBOX_CREATING &&
        gone->oom_kills > sandbox->oom_kills) {
        if (state_is_live(sandbox->state))
            sandbox_start_ending(sandbox, SANDBOX_OOM);
        sandbox->reason = SANDBOX_OOM;
    }
    vanish(sandbox);
}

static void made_is_recorded(struct record *record, int status)
{
    struct sandbox *sandbox = record->sandbox;
    struct error err = {0};

    if (status < 0) {
        (void)error_set(&sandbox->failure, ERROR_SYSTEM, -status, "recording a new sandbox");
        if (state_is_live(sandbox->state))
            sandbox_finish(sandbox, SANDBOX_CRASHED);
        else
            answer_creation(sandbox, &sandbox->failure);
        return;
    }
    if (sandbox->create_done == NULL)
        return;
    if (state_is_live(sandbox->state)) {
        event_publish(sandbox->engine, EVENT_SANDBOX_READY, sandbox, NULL, 0);
        answer_creation(sandbox, NULL);
        return;
    }
    (void)error_set(&err, ERROR_SYSTEM, 0, "the sandbox has ended");
    answer_creation(sandbox, &err);
}

/* Init runs, and the limits are those that were asked for. */
void sandbox_is_made(struct sandbox *sandbox)
{
    if (!sandbox_enter(sandbox, STATE_MADE))
        return;
    sandbox_used(sandbox);
    sandbox_arm(sandbox);
    if (sandbox->pool != NULL) {
        pool_made(sandbox);
        return;
    }
    sandbox->is_recorded = true;
    record_sandbox(sandbox, made_is_recorded, NULL, NULL);
}

static void heard_created(struct sandbox *sandbox, int *fds, size_t fd_count)
{
    sandbox->is_created = true;
    keeper_link_answered(&sandbox->engine->keeper);
    if (fd_count != 1 || !state_is_live(sandbox->state)) {
        fd_close_many(fds, fd_count);
        ask_for_end(sandbox);
        return;
    }
    int r = sandbox_open_link(sandbox, TAKE_FD(fds[0]));
    if (r < 0) {
        (void)error_set(&sandbox->failure, ERROR_SYSTEM, -r, "opening the guest link");
        sandbox_finish(sandbox, SANDBOX_CRASHED);
    }
}

static void set_refusal(struct error *err, const struct wire_refused *refused)
{
    enum error_code code = refused->error == EAGAIN        ? ERROR_LIMIT
                           : refused->step == STEP_REQUEST ? ERROR_INVALID
                           : refused->error == EOPNOTSUPP  ? ERROR_UNSUPPORTED
                                                           : ERROR_SYSTEM;

    *err = (struct error){.code = code, .err = (int)(refused->error & 4095)};
    (void)snprintf(err->message, sizeof err->message, "%s: %.400s", step_words(refused->step), refused->detail.text);
}

static void heard_refused(struct sandbox *sandbox, const struct wire_refused *refused)
{
    struct error err = {0};

    set_refusal(&err, refused);
    if (!sandbox->is_created) {
        sandbox->failure = err;
        keeper_link_answered(&sandbox->engine->keeper);
        (void)sandbox_enter(sandbox, STATE_REFUSED);
        vanish(sandbox);
        return;
    }
    /* An end that is refused: there is no such sandbox any more, and its GONE was missed or is on its way. */
    if (sandbox->requests == NULL || sandbox->requests->type == WIRE_DESTROY)
        vanish(sandbox);
    else
        request_answered(sandbox, NULL, &err);
}

void sandbox_heard(struct sandbox *sandbox, const struct wire_message *message, int *fds, size_t fd_count)
{
    switch ((int)message->type) { /* only some of them come here */
    case WIRE_CREATED:
        heard_created(sandbox, fds, fd_count);
        return;
    case WIRE_REFUSED:
        heard_refused(sandbox, &message->refused);
        return;
    case WIRE_GONE:
        heard_gone(sandbox, &message->gone);
        return;
    case WIRE_OOM:
        if (message->oom.kills > sandbox->oom_kills && state_is_live(sandbox->state)) {
            sandbox->oom_kills = message->oom.kills;
            sandbox->oom_at = uv_now(sandbox->engine->loop);
            exec_ran_out_of_memory(sandbox);
        }
        return;
    default:
        request_answered(sandbox, message, NULL);
    }
}

/* Once a second. */
void sandbox_tick(struct sandbox *sandbox, uint64_t now)
{
    struct guest_link *link = &sandbox->link;

    if (sandbox->state == SANDBOX_PAUSED && link->full_since_ms != 0)
        link->full_since_ms = now; /* it can't read */
    if (link->is_open && link->full_since_ms != 0 && now - link->full_since_ms > ENGINE_READ_LIMIT_MS) {
        sandbox_misbehaved(sandbox);
        return;
    }
    for (struct exec *exec = sandbox->execs, *next; exec != NULL; exec = next) {
        next = exec->next;
        if (exec->is_held)
            exec_drop_stalled(exec, now);
        exec_check_pace(exec);
    }
    exec_end_half_alive(sandbox);
    if (state_is_live(sandbox->state) || sandbox->ended_at == 0)
        return;
    if (!sandbox->is_concluded && now - sandbox->ended_at > ENGINE_CRASH_WAIT_MS) {
        ask_for_end(sandbox);
        conclude(sandbox);
    }
    if (sandbox->is_destroyed && now - sandbox->ended_at > ENGINE_DESTROY_AGAIN_MS) {
        struct wire_message message = {.type = WIRE_DESTROY, .destroy = {.sandbox = sandbox->number}};
        sandbox->ended_at = now;
        /* Whatever answers it, GONE or a refusal, is not counted: the first is still waiting for its own. */
        if (keeper_link_ask(&sandbox->engine->keeper, &message, -1) == 0)
            keeper_link_answered(&sandbox->engine->keeper);
    }
}

void sandbox_abandon(struct sandbox *sandbox)
{
    struct error err = {0};

    sandbox->state = SANDBOX_GONE;
    sandbox->create_done = NULL;
    while (sandbox->execs != NULL)
        exec_abandon(sandbox->execs);
    file_abandon_all(sandbox);
    sandbox_unlist(sandbox);
    request_fail_all(sandbox, &err);
    table_remove(&sandbox->engine->numbers, &sandbox->by_number);
    sandbox_release_handles(sandbox);
    sandbox_unref(sandbox);
}
