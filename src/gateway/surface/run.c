#include "gateway/surface/run.h"

#include "gateway/surface/plan.h"
#include "wire/wire.h"

#include <stdio.h>
#include <string.h>

enum {
    NS_PER_MS = 1000000,
    EXEC_ENV_MAX = 256,
    EXTRA_SIZE = 64,
    COMMAND_RECORDED = 4096, /* bytes of a command in the audit log */
};

/* The text that blocklists look at: the command, or the words of argv with blanks between. NULL: it is too long. */
static const char *command_text(struct call *call, const struct run_wish *wish)
{
    struct buf text = buf_init(RUN_COMMAND_MAX);
    size_t i;
    json_t *word;
    int r = 0;

    if (wish->command != NULL)
        return strlen(wish->command) <= RUN_COMMAND_MAX ? wish->command : NULL;
    json_array_foreach(wish->argv, i, word)
    {
        if (r == 0 && i > 0)
            r = buf_append(&text, " ", 1);
        if (r == 0)
            r = buf_append(&text, json_string_value(word), json_string_length(word));
    }
    const char *copy =
        r == 0 ? arena_copy(&call->request->arena, text.data == NULL ? "" : (char *)text.data, text.length) : NULL;
    buf_release(&text);
    return copy;
}

static int refuse_blocked(struct call *call, const struct blocklist_verdict *verdict)
{
    call->surface->counts.blocked++;
    writer_text(call_detail(call), "rule", verdict->pattern);
    call_refuse(call, 403, "command_blocked", "%s: %s",
                verdict->gave_up ? "the command took too long to check against the rule"
                                 : "the command matches the rule",
                verdict->pattern != NULL ? verdict->pattern : "");
    return -EACCES;
}

/* The patterns that came with the sandbox's creation, besides the configured ones. */
static int check_added(struct call *call, const json_t *patterns, const char *text)
{
    struct blocklist *list = NULL;
    struct error err = {0};
    size_t i;
    json_t *pattern;

    if (json_array_size(patterns) == 0)
        return 0;
    int r = blocklist_new(&list, &err);
    json_array_foreach(patterns, i, pattern)
    {
        if (r == 0)
            r = blocklist_add(list, json_string_value(pattern), &err);
    }
    if (r < 0) {
        call_fail(call, &err);
    } else {
        struct blocklist_verdict verdict = blocklist_check(list, text, strlen(text));
        r = verdict.blocked ? refuse_blocked(call, &verdict) : 0;
    }
    blocklist_free(list);
    return r;
}

/* Before anything runs. When it may not, that was answered. */
static int check_command(struct call *call, const struct sandbox *sandbox, const char *text)
{
    _cleanup_body_ json_t *extra = plan_extra(sandbox);

    if (extra == NULL) {
        call_refuse_memory(call);
        return -ENOMEM;
    }
    /* However long: what else is to be said of the call must fit behind it. */
    size_t length = strlen(text);
    writer_bytes(call_detail(call), "command", text, length < COMMAND_RECORDED ? length : COMMAND_RECORDED);
    if (length > COMMAND_RECORDED)
        writer_number(call_detail(call), "command_bytes", (int64_t)length);
    const char *profile = json_string_value(json_object_get(extra, "profile"));
    struct blocklist_verdict verdict = blocklist_check(surface_blocklist(call->surface, profile), text, strlen(text));
    if (verdict.blocked)
        return refuse_blocked(call, &verdict);
    return check_added(call, json_object_get(extra, "command_blocklist"), text);
}

static const char *const *make_env(struct call *call, const json_t *env)
{
    size_t count = json_object_size(env);
    const char **vector = call_alloc(call, (count + 1) * sizeof *vector);
    const char *name;
    json_t *value;
    size_t i = 0;

    if (vector == NULL)
        return NULL;
    json_object_foreach((json_t *)env, name, value)
    {
        if (!plan_is_env_name(name)) {
            call_refuse(call, 400, "invalid_request", "env.%.64s: a name has letters, digits and _, no digit first",
                        name);
            return NULL;
        }
        vector[i] = arena_printf(&call->request->arena, "%s=%s", name, json_string_value(value));
        if (vector[i++] == NULL) {
            call_refuse(call, 413, "too_large", "env: is too long");
            return NULL;
        }
    }
    return vector;
}

static const char *const *make_argv(struct call *call, const json_t *argv)
{
    const char **vector = call_alloc(call, (json_array_size(argv) + 1) * sizeof *vector);
    size_t i;
    json_t *word;

    if (vector == NULL)
        return NULL;
    json_array_foreach(argv, i, word) vector[i] = json_string_value(word);
    return vector;
}

static uint64_t choose_timeout(const struct run_wish *wish, const struct sandbox_info *info)
{
    uint64_t wanted = (uint64_t)wish->timeout_seconds.value * 1000;
    uint64_t ceiling = info->settings->lifetime_ms;

    if (wanted == 0 || (ceiling != 0 && wanted > ceiling))
        return ceiling;
    return wanted;
}

static int fill(struct run *run, const struct sandbox *sandbox, struct exec_settings *settings)
{
    const struct run_wish *wish = &run->wish;
    uint64_t cap = wish->output_bytes.given ? (uint64_t)wish->output_bytes.value : RUN_OUTPUT_DEFAULT;
    struct sandbox_info info;

    sandbox_get(sandbox, &info);
    if (settings->mode == EXEC_STREAM && cap < EXEC_STREAM_CAP_MIN)
        cap = EXEC_STREAM_CAP_MIN;
    settings->shell = wish->command;
    settings->folder = wish->workdir;
    settings->agent = *run->call->agent != '\0' ? run->call->agent : NULL;
    settings->uid = info.settings->class.user;
    settings->filter = info.settings->class.filter;
    settings->stdin_text = wish->stdin_text;
    settings->has_stdin = wish->stdin_text != NULL || (wish->stdin_open.given && wish->stdin_open.value);
    settings->rows = (uint16_t)wish->rows.value;
    settings->columns = (uint16_t)wish->columns.value;
    settings->stdout_cap = cap;
    settings->stderr_cap = cap;
    settings->timeout_ms = choose_timeout(wish, &info);
    if (wish->argv != NULL && (settings->argv = make_argv(run->call, wish->argv)) == NULL)
        return -ENOMEM;
    if (wish->env != NULL && (settings->env = make_env(run->call, wish->env)) == NULL)
        return -EINVAL;
    return 0;
}

int run_start(struct run *run, struct call *call, struct sandbox *sandbox, bool collects, bool is_attached,
              exec_done started, void *data, struct exec **ret_exec)
{
    struct exec_settings settings = {.mode = collects ? EXEC_COLLECT : EXEC_STREAM,
                                     .is_attached = is_attached,
                                     .has_terminal = json_is_true(run->wish.tty)};
    struct exec_info info;
    struct error err = {0};
    const char *text = command_text(call, &run->wish);

    run->call = call;
    if (text == NULL) {
        call_refuse(call, 413, "too_large", "%s: must have at most %d bytes",
                    run->wish.command != NULL ? "command" : "argv", RUN_COMMAND_MAX);
        return -EFBIG;
    }
    int r = check_command(call, sandbox, text);
    if (r == 0)
        r = fill(run, sandbox, &settings);
    if (r < 0)
        return r;
    r = exec_start(sandbox, &settings, started, data, ret_exec, &err);
    if (r < 0) {
        call_fail(call, &err);
        return r;
    }
    exec_get(*ret_exec, &info);
    (void)snprintf(call->exec, sizeof call->exec, "%s", info.id);
    return 0;
}

static void stop_waiting(struct run *run)
{
    run->call->request->events = NULL;
    exec_follower_free(run->follower);
    run->follower = NULL;
}

static void news(void *data, struct exec_follower *follower)
{
    struct run *run = data;
    struct exec_chunk chunk;
    struct exec_info info;

    int r = exec_follower_next(follower, &chunk);
    if (r >= 0)
        return;
    exec_get(exec_follower_exec(follower), &info);
    if (r != -ENODATA || info.result == NULL) {
        stop_waiting(run);
        call_refuse(run->call, 503, "unavailable", "the command's end could not be recorded");
        return;
    }
    struct exec_result result = *info.result;
    if (result.end == EXEC_NOT_STARTED && result.failed == WIRE_FAILED_FOLDER) {
        stop_waiting(run);
        call_refuse(run->call, 400, "invalid_request", "workdir: %s: %s",
                    run->wish.workdir != NULL ? run->wish.workdir : "/workspace", strerror((int)result.value));
        return;
    }
    run->ended(run, &result);
}

static void client_gone(struct request *request)
{
    struct call *call = call_of(request);
    struct run *run = call->state;

    stop_waiting(run);
    call->verdict = STORE_FAILED;
    writer_text(call_detail(call), "error", "the client went away");
    call_answer_empty(call, 499);
}

void run_and_wait(struct run *run, struct call *call, struct sandbox *sandbox, bool is_attached,
                  void (*ended)(struct run *run, const struct exec_result *result))
{
    static const struct request_events events = {.gone = client_gone};
    struct exec *exec = NULL;
    struct error err = {0};

    run->ended = ended;
    call->state = run;
    if (run_start(run, call, sandbox, true, is_attached, NULL, NULL, &exec) < 0)
        return;
    if (exec_follow(exec, &(struct exec_follow_options){.only_end = true}, news, run, &run->follower, &err) < 0) {
        exec_kill(exec);
        call_fail(call, &err);
        return;
    }
    call->request->events = &events;
    /* The command's end has a record of its own. */
    call_record_early(call);
}

static void write_stream(struct writer *writer, const char *key, const struct exec *exec, enum exec_stream stream,
                         bool is_base64)
{
    struct buf text = buf_init(RUN_OUTPUT_MAX);
    struct exec_chunk chunk;
    uint64_t seq = 0;
    int r = 0;

    while (r == 0 && exec_read(exec, seq, &chunk) == 1) {
        seq = chunk.seq + chunk.length;
        if (chunk.stream == stream)
            r = buf_append(&text, chunk.data, chunk.length);
    }
    if (r < 0)
        writer->result = r;
    else if (is_base64)
        writer_base64(writer, key, text.data, text.length);
    else
        writer_bytes(writer, key, text.data, text.length);
    buf_release(&text);
}

static void write_not_started(struct writer *writer, const struct exec_result *result)
{
    char text[160];

    (void)snprintf(text, sizeof text, "the command could not be started: %s\n", strerror((int)result->value));
    writer_text(writer, "stdout", "");
    writer_text(writer, "stderr", text);
}

void run_write_figures(struct writer *writer, const struct exec_result *result)
{
    writer_number(writer, "exit_code", exec_exit_code(result));
    writer_switch(writer, "timed_out", result->timed_out);
    writer_switch(writer, "truncated", result->truncated);
    writer_switch(writer, "oom", result->oom);
    writer_switch(writer, "killed", result->killed);
    writer_number(writer, "duration_ms", (int64_t)(result->duration_ns / NS_PER_MS));
    writer_number(writer, "cpu_time_ms", (int64_t)((result->user_us + result->system_us) / 1000));
    writer_number(writer, "memory_peak_bytes", (int64_t)result->peak_bytes);
    writer_number(writer, "stdout_bytes", (int64_t)result->totals[EXEC_STDOUT]);
    writer_number(writer, "stderr_bytes", (int64_t)result->totals[EXEC_STDERR]);
}

void run_write_result(struct run *run, struct writer *writer, const struct exec_result *result)
{
    const struct exec *exec = exec_follower_exec(run->follower);
    bool is_base64 = run->wish.encoding != NULL && strcmp(run->wish.encoding, "base64") == 0;

    if (result->end == EXEC_NOT_STARTED) {
        write_not_started(writer, result);
    } else {
        write_stream(writer, "stdout", exec, EXEC_STDOUT, is_base64);
        write_stream(writer, "stderr", exec, EXEC_STDERR, is_base64);
    }
    run_write_figures(writer, result);
    stop_waiting(run);
    writer_number(call_detail(run->call), "exit_code", exec_exit_code(result));
}
