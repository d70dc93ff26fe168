/*
 * What is asked of the keeper about a sandbox that there is: limits, freezing, usage, its end. The keeper answers
 * the requests about one sandbox in the order in which they were made; which one is refused is told by that alone.
 */
#include "gateway/engine/internal.h"

#include "base/cleanup.h"

#include <signal.h>
#include <stdlib.h>

struct request *request_ask(struct sandbox *sandbox, const struct wire_message *message, struct error *err)
{
    struct request *request = calloc(1, sizeof *request);
    int r = request == NULL ? -ENOMEM : keeper_link_ask(&sandbox->engine->keeper, message, -1);

    if (r < 0) {
        free(request);
        (void)error_set(err, ERROR_SYSTEM, -r, "asking the keeper to %s", wire_name(message->type));
        return NULL;
    }
    request->type = message->type;
    *sandbox->requests_end = request;
    sandbox->requests_end = &request->next;
    return request;
}

static struct request *take_first(struct sandbox *sandbox)
{
    struct request *request = sandbox->requests;

    if (request == NULL)
        return NULL;
    sandbox->requests = request->next;
    if (sandbox->requests == NULL)
        sandbox->requests_end = &sandbox->requests;
    keeper_link_answered(&sandbox->engine->keeper);
    return request;
}

static void finish(struct sandbox *sandbox, struct request *request, const struct wire_message *message,
                   const struct error *err)
{
    if (request->answered != NULL && !sandbox->engine->is_closing)
        request->answered(sandbox, request, message, err);
    if (request->exec != NULL)
        exec_unref(request->exec);
    free(request);
}

void request_answered(struct sandbox *sandbox, const struct wire_message *message, const struct error *err)
{
    struct request *request = take_first(sandbox);

    if (request == NULL)
        return;
    bool is_other = message != NULL && (message->type == WIRE_USAGE) != (request->type == WIRE_MEASURE);
    struct error confused = {.code = ERROR_PROTOCOL, .err = EBADMSG, .message = "the keeper answered something else"};
    finish(sandbox, request, message, is_other ? &confused : err);
}

void request_fail_all(struct sandbox *sandbox, const struct error *err)
{
    struct request *request;

    while ((request = take_first(sandbox)) != NULL)
        finish(sandbox, request, NULL, err);
}

static void change_is_recorded(struct record *record, int status)
{
    struct error err = {0};

    if (status < 0)
        (void)error_set(&err, ERROR_SYSTEM, -status, "recording a change of a sandbox");
    if (record->done != NULL)
        record->done(record->data, record->sandbox, status < 0 ? &err : NULL);
}

static void freeze_answered(struct sandbox *sandbox, struct request *request, const struct wire_message *answer,
                            const struct error *err)
{
    struct error ended = {0};

    (void)answer;
    if (err == NULL && !sandbox_enter(sandbox, request->frozen ? STATE_FROZEN : STATE_THAWED)) {
        ignore_result(sandbox_not_running(sandbox, &ended));
        err = &ended;
    }
    if (err != NULL) {
        request->done(request->data, sandbox, err);
        return;
    }
    for (struct exec *exec = sandbox->execs; exec != NULL; exec = exec->next)
        exec_hold_time(exec, request->frozen);
    sandbox_used(sandbox);
    sandbox_arm(sandbox);
    event_publish(sandbox->engine, request->frozen ? EVENT_SANDBOX_PAUSED : EVENT_SANDBOX_RESUMED, sandbox, NULL, 0);
    record_sandbox(sandbox, change_is_recorded, request->done, request->data);
}

static int freeze(struct sandbox *sandbox, bool frozen, sandbox_done done, void *data, struct error *err)
{
    struct wire_message message = {.type = WIRE_FREEZE, .freeze = {.sandbox = sandbox->number, .frozen = frozen}};

    if (sandbox->state != (frozen ? SANDBOX_READY : SANDBOX_PAUSED))
        return sandbox_not_running(sandbox, err);
    struct request *request = request_ask(sandbox, &message, err);
    if (request == NULL)
        return -err->err;
    request->answered = freeze_answered;
    request->frozen = frozen;
    request->done = done;
    request->data = data;
    return 0;
}

int sandbox_pause(struct sandbox *sandbox, sandbox_done done, void *data, struct error *err)
{
    return freeze(sandbox, true, done, data, err);
}

int sandbox_resume(struct sandbox *sandbox, sandbox_done done, void *data, struct error *err)
{
    return freeze(sandbox, false, done, data, err);
}

void sandbox_exec_ended(struct sandbox *sandbox)
{
    if (sandbox->stop_done == NULL || sandbox->exec_count > 0)
        return;
    record_sandbox(sandbox, change_is_recorded, TAKE_PTR(sandbox->stop_done), sandbox->stop_data);
}

int sandbox_stop(struct sandbox *sandbox, sandbox_done done, void *data, struct error *err)
{
    if (!sandbox_enter(sandbox, STATE_HALTED))
        return sandbox_not_running(sandbox, err);
    for (struct exec *exec = sandbox->execs, *next; exec != NULL; exec = next) {
        next = exec->next;
        exec_kill(exec);
    }
    event_publish(sandbox->engine, EVENT_SANDBOX_STOPPED, sandbox, NULL, 0);
    sandbox->stop_done = done;
    sandbox->stop_data = data;
    sandbox_exec_ended(sandbox);
    return 0;
}

int sandbox_restart(struct sandbox *sandbox, sandbox_done done, void *data, struct error *err)
{
    if (sandbox->stop_done != NULL || !sandbox_enter(sandbox, STATE_RESTARTED))
        return sandbox_not_running(sandbox, err);
    sandbox_used(sandbox);
    sandbox_arm(sandbox);
    event_publish(sandbox->engine, EVENT_SANDBOX_STARTED, sandbox, NULL, 0);
    record_sandbox(sandbox, change_is_recorded, done, data);
    return 0;
}

static void limits_answered(struct sandbox *sandbox, struct request *request, const struct wire_message *answer,
                            const struct error *err)
{
    (void)answer;
    if (err != NULL) {
        request->done(request->data, sandbox, err);
        return;
    }
    sandbox->limits = request->limits;
    sandbox->settings.limits = request->limits;
    event_publish(sandbox->engine, EVENT_SANDBOX_LIMITED, sandbox, NULL, 0);
    record_sandbox(sandbox, change_is_recorded, request->done, request->data);
}

int sandbox_set_limits(struct sandbox *sandbox, const struct sandbox_limits *limits, sandbox_done done, void *data,
                       struct error *err)
{
    struct wire_message message = {.type = WIRE_LIMITS,
                                   .limits = {.sandbox = sandbox->number,
                                              .memory_bytes = limits->memory_bytes,
                                              .processes = limits->processes,
                                              .cpu_milli = limits->cpu_milli,
                                              .cpu_weight = limits->cpu_weight}};

    if (!state_is_live(sandbox->state) || sandbox->state == SANDBOX_CREATING)
        return sandbox_not_running(sandbox, err);
    struct request *request = request_ask(sandbox, &message, err);
    if (request == NULL)
        return -err->err;
    request->answered = limits_answered;
    request->limits = *limits;
    request->done = done;
    request->data = data;
    return 0;
}

static void usage_answered(struct sandbox *sandbox, struct request *request, const struct wire_message *answer,
                           const struct error *err)
{
    if (err != NULL || answer == NULL) {
        request->usage_done(request->data, NULL, err);
        return;
    }
    const struct wire_usage *usage = &answer->usage;
    struct sandbox_usage figures = {.cpu_us = usage->cpu_us,
                                    .memory_bytes = usage->memory_bytes,
                                    .memory_peak_bytes = usage->memory_peak_bytes,
                                    .disk_free_bytes = sandbox->disk_free_bytes,
                                    .disk_free_inodes = sandbox->disk_free_inodes,
                                    .processes = usage->processes,
                                    .processes_peak = usage->processes_peak,
                                    .processes_refused = usage->processes_refused,
                                    .oom_kills = usage->oom_kills};
    request->usage_done(request->data, &figures, NULL);
}

int sandbox_measure(struct sandbox *sandbox, sandbox_usage_done done, void *data, struct error *err)
{
    struct wire_message message = {.type = WIRE_MEASURE, .measure = {.sandbox = sandbox->number}};

    if (!state_is_live(sandbox->state) || !sandbox->is_created)
        return sandbox_not_running(sandbox, err);
    struct request *request = request_ask(sandbox, &message, err);
    if (request == NULL)
        return -err->err;
    request->answered = usage_answered;
    request->usage_done = done;
    request->data = data;
    return 0;
}
