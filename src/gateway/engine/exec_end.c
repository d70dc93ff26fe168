/*
 * The end of an exec: by EXIT, with its sandbox, or because memory ran out; its record, its followers, and how long its
 * result is kept.
 */
#include "gateway/engine/internal.h"

#include <signal.h>

enum { SIGNAL_BASE = 128 };

int exec_exit_code(const struct exec_result *result)
{
    if (result->timed_out)
        return -1;
    switch (result->end) {
    case EXEC_EXITED:
        return (int)result->value;
    case EXEC_SIGNALED:
        return SIGNAL_BASE + (int)result->value;
    case EXEC_NOT_STARTED:
        return result->value == ENOENT || result->value == ENOTDIR ? 127 : 126;
    case EXEC_LOST:
        break;
    }
    return -1;
}

static void blame(struct exec *exec)
{
    exec->is_oom = true;
    event_publish(exec->engine, EVENT_SANDBOX_OOM, exec->sandbox, NULL, 0);
}

static void kills_are_counted(struct sandbox *sandbox, struct request *request, const struct wire_message *answer,
                              const struct error *err)
{
    struct exec *exec = request->exec;

    if (err == NULL && answer != NULL && answer->usage.oom_kills > sandbox->oom_blamed) {
        sandbox->oom_kills = sandbox->oom_blamed = answer->usage.oom_kills;
        blame(exec);
    }
    if (exec->state == EXEC_ENDING && exec->is_counting) {
        exec->is_counting = false;
        exec_record_end(exec);
    }
}

/* Killed, and not by us: perhaps memory ran out, and the news of it is slower than this. */
static bool count_kills(struct exec *exec)
{
    struct sandbox *sandbox = exec->sandbox;
    struct wire_message message = {.type = WIRE_MEASURE, .measure = {.sandbox = sandbox->number}};
    const struct exec_result *result = &exec->result;
    struct error err;

    if (exec->is_killed || exec->is_timed_out || exec->is_oom ||
        !((result->end == EXEC_SIGNALED && result->value == SIGKILL) ||
          (result->end == EXEC_EXITED && result->value == SIGNAL_BASE + SIGKILL)))
        return false;
    struct request *request = request_ask(sandbox, &message, &err);
    if (request == NULL)
        return false;
    exec->refs++;
    exec->is_counting = true;
    request->exec = exec;
    request->answered = kills_are_counted;
    return true;
}

void exec_heard_exit(struct exec *exec, const struct wire_exit *exit)
{
    struct sandbox *sandbox = exec->sandbox;

    if (exec_take(exec, 0, exit->stdout_tail) < 0 || exec_take(exec, 1, exit->stderr_tail) < 0)
        exec->is_unrecorded = true;
    exec->state = EXEC_ENDING;
    exec->result = (struct exec_result){
        .end = exit->kind == WIRE_EXIT_CODE     ? EXEC_EXITED
               : exit->kind == WIRE_EXIT_SIGNAL ? EXEC_SIGNALED
                                                : EXEC_NOT_STARTED,
        .value = exit->value,
        .failed = exit->failed,
        .duration_ns = exit->duration_ns,
        .user_us = exit->user_us,
        .system_us = exit->system_us,
        .peak_bytes = exit->peak_bytes,
        .totals = {exit->stdout_total, exit->stderr_total},
    };
    sandbox->disk_free_bytes = exit->disk_free_bytes;
    sandbox->disk_free_inodes = exit->disk_free_inodes;
    if (exec->has_timer)
        ignore_result(uv_timer_stop(&exec->timer));
    if (!count_kills(exec))
        exec_record_end(exec);
}

void exec_lost(struct exec *exec, enum sandbox_reason reason)
{
    bool was_running = exec->state == EXEC_RUNNING;

    exec->refs++;
    exec_leave(exec);
    if (was_running) {
        exec->state = EXEC_ENDING;
        exec->is_killed = true;
        exec->is_oom = exec->is_oom || reason == SANDBOX_OOM;
        exec->result = (struct exec_result){
            .end = EXEC_LOST,
            .value = reason,
            .duration_ns = (uv_now(exec->engine->loop) - exec->started_at) * 1000000U,
            .totals = {exec->channel.received[0], exec->channel.received[1]},
        };
    }
    if (was_running || exec->is_counting) {
        exec->is_counting = false;
        exec_record_end(exec);
    }
    exec_unref(exec);
}

void exec_forget_oldest(struct engine *engine)
{
    struct exec *exec = engine->ended_first;

    engine->ended_first = exec->ended_next;
    if (engine->ended_first == NULL)
        engine->ended_end = &engine->ended_first;
    engine->result_bytes -= exec->kept_bytes;
    exec_unlist(exec);
    exec_unref(exec);
}

void exec_expire(struct engine *engine)
{
    uint64_t now = uv_now(engine->loop);

    while (engine->ended_first != NULL && (engine->result_bytes > engine->options.result_bytes_max ||
                                           now - engine->ended_first->ended_at >= engine->options.result_keep_ms))
        exec_forget_oldest(engine);
}

static void keep_result(struct exec *exec)
{
    struct engine *engine = exec->engine;

    exec->ended_at = uv_now(engine->loop);
    exec->kept_bytes = ring_size(&exec->ring) + sizeof *exec;
    engine->result_bytes += exec->kept_bytes;
    exec->refs++;
    *engine->ended_end = exec;
    engine->ended_end = &exec->ended_next;
}

void exec_finished(struct exec *exec)
{
    struct engine *engine = exec->engine;
    struct wire_message message = {.type = WIRE_RELEASE, .release = {.channel = exec->channel.id}};

    exec->refs++;
    exec->state = EXEC_ENDED;
    exec->is_held = false;
    engine->running--;
    engine->exec_ended_at = uv_now(engine->loop);
    exec_tell(exec);
    event_publish(engine, EVENT_EXEC_ENDED, NULL, exec, exec_exit_code(&exec->result));
    if (exec->room != NULL)
        exec_heard_room(exec);
    if (exec->sandbox != NULL) {
        ignore_result(sandbox_say(exec->sandbox, &message));
        if (exec->sandbox != NULL)
            exec_leave(exec);
    }
    exec_close_timer(exec);
    keep_result(exec);
    exec_give_back(exec);
    if (exec->wants_forgetting)
        exec_unlist(exec);
    exec_expire(engine);
    exec_unref(exec);
    pool_turn(engine);
}

void exec_ran_out_of_memory(struct sandbox *sandbox)
{
    struct exec *exec = sandbox->execs;

    if (sandbox->exec_count == 0 || sandbox->was_file_killed)
        sandbox->oom_blamed = sandbox->oom_kills; /* it was no command's process */
    sandbox->was_file_killed = false;
    /* The kernel chose one process; the command it belonged to is not left half alive. Which of several: see below. */
    if (sandbox->oom_blamed == sandbox->oom_kills || sandbox->exec_count != 1 || sandbox->files != NULL ||
        exec->state != EXEC_RUNNING || exec->is_oom)
        return;
    sandbox->oom_blamed = sandbox->oom_kills;
    blame(exec);
    exec_send_kill(exec);
}

/* None of them has ended with it, so it is not known whose process was killed: none can be trusted to be whole. */
void exec_end_half_alive(struct sandbox *sandbox)
{
    if (sandbox->oom_kills <= sandbox->oom_blamed)
        return;
    sandbox->oom_blamed = sandbox->oom_kills;
    if (sandbox->was_file_killed) {
        sandbox->was_file_killed = false;
        return;
    }
    for (struct exec *exec = sandbox->execs, *next; exec != NULL; exec = next) {
        next = exec->next;
        if (exec->state != EXEC_RUNNING || exec->is_oom || exec->started_at > sandbox->oom_at)
            continue;
        blame(exec);
        exec_send_kill(exec);
    }
}
