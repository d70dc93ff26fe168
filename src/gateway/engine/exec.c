/*
 * Theory of operation. EXEC goes to init before the exec is recorded, so that recording takes no time of the command's;
 * should the gateway end in between, the next one releases, and so kills, what was started and not recorded. `started`
 * and every result wait for the record. EXIT takes the channel away; the exec is then recorded as ended, RELEASE lets
 * init forget it, and its result stays in the table until it expires.
 */
#include "gateway/engine/internal.h"

#include "base/cleanup.h"
#include "gateway/engine/exec_words.h"
#include "gateway/engine/name.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CAP_DEFAULT = 1 << 20,
    ARGS_AT_ONCE = 49152,
    FOLDER_MAX = 4095,
    OUTBOX_BUSY = 1 << 20,
};

void exec_give_back(struct exec *exec)
{
    if (exec->state == EXEC_ENDED && exec->followers == NULL)
        budget_give_back(&exec->engine->budget, &exec->share);
}

void exec_unref(struct exec *exec)
{
    if (--exec->refs > 0)
        return;
    budget_give_back(&exec->engine->budget, &exec->share);
    if (exec->spool != NULL)
        exec->engine->recorder->spool_end(exec->spool, false);
    ring_release(&exec->ring);
    free(exec->input);
    free(exec);
}

static void timer_closed(uv_handle_t *handle)
{
    struct exec *exec = handle->data;
    struct engine *engine = exec->engine;

    exec_unref(exec);
    engine->handles--;
    engine_handle_closed(engine);
}

void exec_close_timer(struct exec *exec)
{
    if (!exec->has_timer)
        return;
    exec->has_timer = false;
    uv_close((uv_handle_t *)&exec->timer, timer_closed);
}

static void timer_fired(uv_timer_t *timer)
{
    struct exec *exec = timer->data;

    if (exec->sandbox == NULL || exec->state != EXEC_RUNNING)
        return;
    if (exec->is_killed || exec->is_timed_out || exec->is_oom) {
        sandbox_misbehaved(exec->sandbox); /* init has not killed it, or does not say so */
        return;
    }
    exec->is_timed_out = true;
    exec_send_kill(exec);
}

void exec_arm(struct exec *exec, uint64_t ms)
{
    if (!exec->has_timer) {
        ignore_result(uv_timer_init(exec->engine->loop, &exec->timer));
        exec->timer.data = exec;
        exec->has_timer = true;
        exec->refs++;
        exec->engine->handles++;
    }
    ignore_result(uv_timer_start(&exec->timer, timer_fired, ms, 0));
}

void exec_hold_time(struct exec *exec, bool is_paused)
{
    if (is_paused && exec->has_timer && uv_is_active((uv_handle_t *)&exec->timer)) {
        exec->left_ms = uv_timer_get_due_in(&exec->timer);
        exec->is_pausing = true;
        ignore_result(uv_timer_stop(&exec->timer));
    } else if (!is_paused && exec->is_pausing) {
        exec->is_pausing = false;
        exec_arm(exec, exec->left_ms);
    }
}

/* In a sandbox that is frozen it works, and its time runs, when that goes on. */
void exec_send_kill(struct exec *exec)
{
    struct wire_message message = {
        .type = WIRE_SIGNAL, .signal = {.channel = exec->channel.id, .signal = SIGKILL, .scope = WIRE_SCOPE_TREE}};

    exec_arm(exec, ENGINE_KILL_LIMIT_MS);
    if (exec->sandbox->state == SANDBOX_PAUSED)
        exec_hold_time(exec, true);
    ignore_result(sandbox_say(exec->sandbox, &message));
}

void exec_kill(struct exec *exec)
{
    if (exec->state != EXEC_RUNNING || exec->is_killed || exec->sandbox == NULL)
        return;
    exec->is_killed = true;
    exec_send_kill(exec);
}

void exec_add(struct sandbox *sandbox, struct exec *exec)
{
    struct engine *engine = sandbox->engine;

    exec->is_listed = true;
    table_add(&engine->execs, &exec->by_id, table_hash_text(exec->id));
    exec->older = engine->exec_newest;
    *(engine->exec_newest != NULL ? &engine->exec_newest->newer : &engine->exec_oldest) = exec;
    engine->exec_newest = exec;
    exec->next = sandbox->execs;
    sandbox->execs = exec;
    sandbox->exec_count++;
    sandbox->executed++;
    engine->running++;
    engine->exec_started_at = uv_now(engine->loop);
    engine->totals.executed++;
    guest_open(&sandbox->link.guest, &exec->channel);
    sandbox_used(sandbox);
}

/* Nobody can find it any more. */
void exec_unlist(struct exec *exec)
{
    struct engine *engine = exec->engine;

    if (!exec->is_listed)
        return;
    exec->is_listed = false;
    table_remove(&engine->execs, &exec->by_id);
    *(exec->older != NULL ? &exec->older->newer : &engine->exec_oldest) = exec->newer;
    *(exec->newer != NULL ? &exec->newer->older : &engine->exec_newest) = exec->older;
    exec_unref(exec);
}

/* It has nothing to do with its sandbox any more. */
void exec_leave(struct exec *exec)
{
    struct sandbox *sandbox = TAKE_PTR(exec->sandbox);
    struct exec **at = &sandbox->execs;

    while (*at != exec)
        at = &(*at)->next;
    *at = exec->next;
    sandbox->exec_count--;
    guest_close(&sandbox->link.guest, &exec->channel);
    sandbox_used(sandbox);
    sandbox_exec_ended(sandbox);
}

static int take_share(struct exec *exec, uint64_t wanted, bool is_again, struct error *err)
{
    struct budget *budget = &exec->engine->budget;

    if (is_again)
        exec->share = budget_take_again(budget, wanted, EXEC_STREAM_CAP_MIN);
    /* Init goes on with the caps that it was told. */
    bool is_enough = is_again ? exec->mode == EXEC_STREAM || exec->share.least + exec->share.extra == wanted
                              : budget_take(budget, wanted, EXEC_STREAM_CAP_MIN, &exec->share) == 0;
    if (is_enough)
        return 0;
    return error_set(err, ERROR_LIMIT, EAGAIN,
                     "the output of the execs that are running takes all memory there is for it");
}

/* The newest or the first bytes, as many as there is memory for. */
static int set_caps(struct exec *exec, const struct exec_settings *settings, bool is_again, struct error *err)
{
    uint64_t cap = settings->stdout_cap != 0 ? settings->stdout_cap : CAP_DEFAULT;
    uint64_t errors_cap = settings->stderr_cap != 0 ? settings->stderr_cap : CAP_DEFAULT;
    uint64_t stream_cap = cap < EXEC_STREAM_CAP_MIN ? EXEC_STREAM_CAP_MIN : cap;
    uint64_t wanted = exec->mode == EXEC_COLLECT ? cap + errors_cap : stream_cap;
    int r = take_share(exec, wanted, is_again, err);

    if (r < 0)
        return r;
    uint64_t granted = exec->share.least + exec->share.extra;
    if (exec->mode == EXEC_COLLECT) {
        uint64_t part = cap * granted / wanted;
        exec->channel.caps[0] = part == 0 ? 1 : part < granted ? part : granted - 1; /* 0 would be no cap */
        exec->channel.caps[1] = granted - exec->channel.caps[0];
    }
    ring_init(&exec->ring, granted);
    return 0;
}

static struct exec *new_exec(struct sandbox *sandbox, const struct exec_settings *settings, bool is_again,
                             struct error *err)
{
    const char *agent = settings->agent != NULL ? settings->agent : sandbox->settings.agent;
    const char *extra = settings->extra != NULL ? settings->extra : "";
    size_t agent_size = strlen(agent) + 1;
    size_t extra_size = strlen(extra) + 1;
    struct exec *exec = NULL;

    if (agent_size > SANDBOX_TEXT_MAX || extra_size > SANDBOX_SETTINGS_MAX)
        (void)error_set(err, ERROR_LIMIT, E2BIG, "the settings of an exec are too long");
    else if ((exec = calloc(1, sizeof *exec + agent_size + extra_size)) == NULL)
        (void)error_set(err, ERROR_SYSTEM, ENOMEM, "starting an exec");
    if (exec == NULL)
        return NULL;
    char *text = (char *)(exec + 1);
    memcpy(text, agent, agent_size);
    memcpy(text + agent_size, extra, extra_size);
    exec->agent = text;
    exec->extra = text + agent_size;
    exec->engine = sandbox->engine;
    exec->sandbox = sandbox;
    exec->refs = 1;
    (void)snprintf(exec->sandbox_id, sizeof exec->sandbox_id, "%s", sandbox->id);
    (void)snprintf(exec->owner, sizeof exec->owner, "%s", sandbox->settings.owner);
    exec->mode = settings->mode;
    exec->has_stdin = settings->has_stdin;
    exec->has_terminal = settings->has_terminal;
    exec->is_attached = settings->is_attached;
    exec->timeout_ms = settings->timeout_ms;
    exec->started_ms = engine_wall_ms();
    exec->started_at = uv_now(exec->engine->loop);
    exec->channel.owner = exec;
    exec->channel.has_errors = !settings->has_terminal;
    exec->channel.stdin_closed = !settings->has_stdin;
    if (set_caps(exec, settings, is_again, err) < 0) {
        exec_unref(exec);
        return NULL;
    }
    return exec;
}

static int check(const struct sandbox *sandbox, const struct exec_settings *settings, struct error *err)
{
    const struct engine *engine = sandbox->engine;

    if (sandbox->state != SANDBOX_READY || !sandbox->link.is_open)
        return sandbox_not_running(sandbox, err);
    if (engine->running >= engine->options.execs_max)
        return error_set(err, ERROR_LIMIT, EAGAIN, "%u execs are running, as many as are allowed", engine->running);
    if (sandbox->exec_count >= ENGINE_EXECS_PER_SANDBOX || sandbox->link.outbox.bytes > OUTBOX_BUSY)
        return error_set(err, ERROR_LIMIT, EAGAIN, "too many execs are running in this sandbox");
    if (settings->stdout_cap > EXEC_CAP_MAX || settings->stderr_cap > EXEC_CAP_MAX)
        return error_set(err, ERROR_INVALID, 0, "at most %d MiB of output can be kept", EXEC_CAP_MAX >> 20);
    if (settings->uid >= WIRE_INNER_IDS || settings->filter > WIRE_FILTER_STANDARD)
        return error_set(err, ERROR_INVALID, 0, "there is no such user or filter");
    if (settings->folder != NULL && strlen(settings->folder) > FOLDER_MAX)
        return error_set(err, ERROR_INVALID, ENAMETOOLONG, "the folder's path is too long");
    return engine_check_recording(engine, err);
}

/* ARGS for what does not fit, then EXEC. */
static int send_exec(struct exec *exec, const struct exec_settings *settings, struct error *err)
{
    struct sandbox *sandbox = exec->sandbox;
    struct buf strings = buf_init(WIRE_STRINGS_MAX);
    size_t sent = 0;
    struct wire_message message = {
        .type = WIRE_EXEC,
        .exec = {.channel = exec->channel.id,
                 .flags = (exec->mode == EXEC_COLLECT ? WIRE_EXEC_COLLECT : 0U) |
                          (settings->has_stdin ? WIRE_EXEC_STDIN : 0U) | (settings->has_terminal ? WIRE_EXEC_TTY : 0U),
                 .filter = settings->filter,
                 .uid = settings->uid,
                 .gid = settings->uid,
                 .stdout_cap = exec->channel.caps[0],
                 .stderr_cap = exec->channel.caps[1],
                 .file_bytes = settings->file_bytes,
                 .cpu_seconds = settings->cpu_seconds,
                 .open_files = settings->open_files,
                 .rows = settings->rows,
                 .columns = settings->columns,
                 .folder = wire_str(settings->folder != NULL ? settings->folder : "/workspace")},
    };
    int r = exec_words(settings, sandbox->settings.env, &strings, &message.exec.argc, &message.exec.envc, err);

    while (r == 0 && strings.length - sent > ARGS_AT_ONCE) {
        struct wire_message args = {
            .type = WIRE_ARGS,
            .args = {.channel = exec->channel.id, .strings = {.data = strings.data + sent, .length = ARGS_AT_ONCE}}};
        r = guest_link_say(&sandbox->link, &args);
        sent += ARGS_AT_ONCE;
    }
    if (r == 0) {
        message.exec.strings =
            (struct wire_bytes){.data = strings.data + sent, .length = (uint32_t)(strings.length - sent)};
        r = guest_link_say(&sandbox->link, &message);
    }
    buf_release(&strings);
    if (r < 0 && err->message[0] == '\0')
        return error_set(err, ERROR_SYSTEM, -r, "starting an exec");
    return r;
}

static void start_is_recorded(struct record *record, int status)
{
    struct exec *exec = record->exec;
    struct error err = {0};

    exec->is_recorded = status == 0;
    if (status == 0)
        event_publish(exec->engine, EVENT_EXEC_STARTED, NULL, exec, 0);
    if (status < 0) {
        (void)error_set(&err, ERROR_SYSTEM, -status, "recording an exec");
        exec_give_up(exec);
    }
    if (record->exec_done != NULL)
        record->exec_done(record->data, exec, status < 0 ? &err : NULL);
}

static int record_start(struct exec *exec, const struct exec_settings *settings, exec_done started, void *data,
                        struct error *err)
{
    const struct recorder *recorder = exec->engine->recorder;
    struct record *record = record_new(exec->engine, NULL, exec, start_is_recorded);

    if (record == NULL)
        return error_set(err, ERROR_SYSTEM, ENOMEM, "recording an exec");
    record->exec_done = started;
    record->data = data;
    struct exec_settings granted = *settings;
    granted.stdout_cap = exec->mode == EXEC_COLLECT ? exec->channel.caps[0] : exec->ring.cap;
    granted.stderr_cap = exec->mode == EXEC_COLLECT ? exec->channel.caps[1] : settings->stderr_cap;
    struct recorder_exec what = {.id = exec->id,
                                 .sandbox = exec->sandbox_id,
                                 .owner = exec->owner,
                                 .channel = exec->channel.id,
                                 .settings = &granted,
                                 .started_ms = exec->started_ms};
    recorder->exec(recorder->context, &what, record_finished, record);
    return 0;
}

/* Whoever asked may be gone when there is room for the rest of it. */
static int keep_input(struct exec *exec, const char *text, struct error *err)
{
    exec->input = strdup(text);
    exec->input_length = strlen(text);
    return exec->input == NULL ? error_set(err, ERROR_SYSTEM, ENOMEM, "keeping the standard input of an exec") : 0;
}

int exec_start(struct sandbox *sandbox, const struct exec_settings *settings, exec_done started, void *data,
               struct exec **ret_exec, struct error *err)
{
    int r = check(sandbox, settings, err);
    struct exec *exec = r == 0 ? new_exec(sandbox, settings, false, err) : NULL;

    if (exec == NULL)
        return r < 0 ? r : -err->err;
    err->message[0] = '\0';
    exec->channel.id = guest_channel_id(exec->engine->options.start, false, ++sandbox->last_count);
    r = name_make("ex", exec->id);
    if (r < 0)
        r = error_set(err, ERROR_SYSTEM, -r, "making an id");
    if (r == 0 && settings->stdin_text != NULL)
        r = keep_input(exec, settings->stdin_text, err);
    if (r == 0)
        r = send_exec(exec, settings, err);
    if (r < 0) {
        exec_unref(exec);
        return r;
    }
    exec_add(sandbox, exec);
    if (exec->timeout_ms != 0)
        exec_arm(exec, exec->timeout_ms);
    exec_feed(exec);
    r = record_start(exec, settings, started, data, err);
    if (r < 0) {
        exec->wants_forgetting = true;
        exec_give_up(exec);
        return r;
    }
    *ret_exec = exec;
    return 0;
}

int exec_adopt(struct sandbox *sandbox, const struct exec_adopted *adopted, struct exec **ret_exec, struct error *err)
{
    struct exec *exec = new_exec(sandbox, adopted->settings, true, err);
    uint64_t offsets[EXEC_STREAMS] = {adopted->offsets[0], adopted->offsets[1]};

    if (exec == NULL)
        return -err->err;
    (void)snprintf(exec->id, sizeof exec->id, "%s", adopted->id);
    exec->channel.id = adopted->channel;
    exec->started_ms = adopted->started_ms;
    exec->is_recorded = true;
    for (size_t i = 0; i < adopted->piece_count; i++)
        offsets[adopted->pieces[i].stream] -= adopted->pieces[i].length;
    ring_start_at(&exec->ring, adopted->seq_first, offsets);
    exec->recorded = adopted->seq_first;
    for (size_t i = 0; i < adopted->piece_count; i++) {
        struct wire_bytes data = {adopted->pieces[i].data, (uint32_t)adopted->pieces[i].length};
        int r = exec_take(exec, adopted->pieces[i].stream, data);
        if (r < 0) {
            exec_unref(exec);
            return error_set(err, ERROR_SYSTEM, -r, "adopting an exec's output");
        }
        exec->recorded = exec->ring.next;
    }
    exec->recorded = exec->recording = exec->stored = exec->seq_at_tick = exec->ring.next;
    memcpy(exec->recorded_offsets, adopted->offsets, sizeof exec->recorded_offsets);
    memcpy(exec->recording_offsets, adopted->offsets, sizeof exec->recording_offsets);
    memcpy(exec->channel.received, adopted->offsets, sizeof exec->channel.received);
    memcpy(exec->channel.acked, adopted->offsets, sizeof exec->channel.acked);
    exec->channel.is_resumed = true;
    /* How much input was sent is not known any more, and what its reader gets must have no gap: init says it. */
    exec->channel.is_input_unknown = true;
    exec->channel.stdin_closed = false;
    exec_add(sandbox, exec);
    struct wire_message message = {.type = WIRE_RESUME,
                                   .resume = {.channel = adopted->channel,
                                              .stdout_offset = adopted->offsets[0],
                                              .stderr_offset = adopted->offsets[1],
                                              .start = sandbox->engine->options.start}};
    ignore_result(sandbox_say(sandbox, &message));
    if (exec->timeout_ms != 0) {
        uint64_t age_ms = engine_wall_ms() > exec->started_ms ? engine_wall_ms() - exec->started_ms : 0;
        exec_arm(exec, age_ms < exec->timeout_ms ? exec->timeout_ms - age_ms : 1);
        if (sandbox->state == SANDBOX_PAUSED)
            exec_hold_time(exec, true);
    }
    *ret_exec = exec;
    return 0;
}

void exec_heard_output(struct exec *exec, size_t stream, struct wire_bytes data)
{
    if (exec->is_unrecorded)
        exec_acknowledge(exec);
    else if (exec_take(exec, stream, data) < 0)
        exec_give_up(exec);
}

void exec_abandon(struct exec *exec)
{
    exec_leave(exec);
    exec_close_timer(exec);
    exec_unlist(exec);
}
