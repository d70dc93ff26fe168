#include "gateway/surface/call.h"
#include "gateway/surface/history.h"
#include "gateway/surface/routes.h"
#include "gateway/surface/run.h"
#include "wire/wire.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { LIST_BYTES_MAX = 16 << 20, WAIT_TIMEOUT_S = 30, ROWS = 24, COLUMNS = 80 };

#define RUN(member) offsetof(struct run_wish, member)
static const struct body_field create_items[] = {
    {"command", BODY_TEXT, RUN(command), false, 1, INT64_MAX, NULL, NULL},
    {"argv", BODY_TEXTS, RUN(argv), false, 1, RUN_ARGUMENTS_MAX, NULL, NULL},
    {"workdir", BODY_TEXT, RUN(workdir), false, 1, 4095, NULL, NULL},
    {"env", BODY_MAP, RUN(env), false, 0, 256, NULL, NULL},
    {"stdin", BODY_TEXT, RUN(stdin_text), false, 0, INT64_MAX, NULL, NULL},
    {"stdin_open", BODY_SWITCH, RUN(stdin_open), false, 0, 0, NULL, NULL},
    {"encoding", BODY_TEXT, RUN(encoding), false, 0, 0, "utf-8|base64", NULL},
    {"timeout_seconds", BODY_NUMBER, RUN(timeout_seconds), false, 1, RUN_TIMEOUT_MAX_S, NULL, NULL},
    {"output_bytes", BODY_NUMBER, RUN(output_bytes), false, 1, RUN_OUTPUT_MAX, NULL, NULL},
    {"wait", BODY_SWITCH, RUN(wait), false, 0, 0, NULL, NULL},
    {"detach", BODY_SWITCH, RUN(detach), false, 0, 0, NULL, NULL},
    {"tty", BODY_VALUE, RUN(tty), false, 0, 0, NULL, NULL},
    {"rows", BODY_NUMBER, RUN(rows), false, 1, UINT16_MAX, NULL, NULL},
    {"columns", BODY_NUMBER, RUN(columns), false, 1, UINT16_MAX, NULL, NULL},
};
static const struct body_fields create_fields = BODY_FIELDS(create_items);

static const char *state_of(const struct exec_info *info)
{
    return info->result != NULL ? "exited" : "running";
}

static void write_head(struct writer *writer, const struct exec_info *info)
{
    writer_text(writer, "id", info->id);
    writer_text(writer, "sandbox_id", info->sandbox);
    writer_text(writer, "agent", info->agent != NULL && *info->agent != '\0' ? info->agent : NULL);
    writer_text(writer, "status", state_of(info));
    writer_switch(writer, "tty", info->has_terminal);
    writer_time(writer, "started_at", info->started_ms);
    writer_number(writer, "output_first", (int64_t)info->seq_first);
    writer_number(writer, "output_next", (int64_t)info->seq_next);
    if (info->has_stdin && info->is_stdin_known)
        writer_number(writer, "stdin_next", (int64_t)info->stdin_next);
    else
        writer_null(writer, "stdin_next");
}

static void write_exec(struct writer *writer, const struct exec *exec)
{
    struct exec_info info;

    exec_get(exec, &info);
    writer_open(writer, NULL, '{');
    write_head(writer, &info);
    if (info.result != NULL)
        run_write_figures(writer, info.result);
    else
        writer_null(writer, "exit_code");
    writer_close(writer, '}');
}

static void answer_exec(struct call *call, unsigned status, const struct exec *exec)
{
    struct writer writer = writer_init(CALL_ANSWER_MAX);

    write_exec(&writer, exec);
    call_answer(call, status, &writer);
}

static void ended(struct run *run, const struct exec_result *result)
{
    struct writer writer = writer_init(CALL_ANSWER_MAX);
    struct exec_info info;

    exec_get(exec_follower_exec(run->follower), &info);
    writer_open(&writer, NULL, '{');
    write_head(&writer, &info);
    run_write_result(run, &writer, result);
    writer_close(&writer, '}');
    call_answer(run->call, 200, &writer);
}

static void started(void *data, struct exec *exec, const struct error *err)
{
    struct call *call = data;
    char location[80];

    if (err != NULL) {
        call_fail(call, err);
        return;
    }
    (void)snprintf(location, sizeof location, "/api/v1/execs/%s", call->exec);
    ignore_result(request_set_header(call->request, "Location", location)); /* the id is in the body too */
    answer_exec(call, 201, exec);
}

static int check_wish(struct call *call, struct run_wish *wish)
{
    const char *problem = NULL;

    if ((wish->command == NULL) == (wish->argv == NULL))
        problem = "command: give either command (for the shell) or argv";
    else if (wish->tty != NULL && !json_is_boolean(wish->tty))
        problem = "tty: must be true or false";
    else if (wish->stdin_text != NULL && wish->stdin_open.value)
        problem = "stdin_open: stdin is given already";
    else if (wish->stdin_open.value && wish->wait.value)
        problem = "stdin_open: nobody could write while the caller waits";
    if (problem != NULL) {
        call_refuse(call, 400, "invalid_request", "%s", problem);
        return -EINVAL;
    }
    wish->rows.value = wish->rows.given ? wish->rows.value : ROWS;
    wish->columns.value = wish->columns.given ? wish->columns.value : COLUMNS;
    if (json_is_true(wish->tty))
        wish->stdin_open.given = wish->stdin_open.value = wish->stdin_text == NULL;
    return 0;
}

void execs_create(struct request *request)
{
    struct call *call = call_of(request);
    struct sandbox *sandbox = call_sandbox(call);
    struct run *run = sandbox == NULL ? NULL : call_alloc(call, sizeof *run);
    struct exec *exec = NULL;

    if (run == NULL || call_take(call, &create_fields, &run->wish) < 0 || check_wish(call, &run->wish) < 0)
        return;
    if (run->wish.wait.value) {
        if (!run->wish.timeout_seconds.given)
            run->wish.timeout_seconds.value = WAIT_TIMEOUT_S;
        run_and_wait(run, call, sandbox, !run->wish.detach.value, ended);
        return;
    }
    bool is_attached = run->wish.detach.given && !run->wish.detach.value;
    ignore_result(run_start(run, call, sandbox, false, is_attached, started, call, &exec)); /* it was answered */
}

void execs_list(struct request *request)
{
    struct call *call = call_of(request);
    struct writer writer = writer_init(LIST_BYTES_MAX);
    struct exec *exec = NULL;
    int64_t count = 0;

    if (call_sandbox(call) == NULL)
        return;
    writer_open(&writer, NULL, '{');
    writer_open(&writer, "execs", '[');
    while ((exec = exec_next_of(call->surface->options.engine, call->sandbox, exec)) != NULL) {
        write_exec(&writer, exec);
        count++;
    }
    writer_close(&writer, ']');
    writer_number(&writer, "count", count);
    writer_close(&writer, '}');
    call_answer(call, 200, &writer);
}

void execs_get(struct request *request)
{
    struct call *call = call_of(request);

    if (call_has_exec(call))
        answer_exec(call, 200, call_exec(call));
    else
        history_answer(call);
}

void execs_delete(struct request *request)
{
    struct call *call = call_of(request);
    struct exec *exec = call_exec(call);

    if (exec == NULL)
        return;
    exec_kill(exec);
    call_answer_empty(call, 204);
}

struct signal_body {
    struct body_number number;
    const char *name;
    const char *scope;
};

static const struct body_field signal_items[] = {
    {"signal", BODY_TEXT, offsetof(struct signal_body, name), true, 1, 16, NULL, NULL},
    {"scope", BODY_TEXT, offsetof(struct signal_body, scope), false, 0, 0, "process|group|tree", NULL},
};
static const struct body_fields signal_fields = BODY_FIELDS(signal_items);

static int find_signal(const char *name)
{
    static const struct {
        const char *name;
        int number;
    } signals[] = {{"HUP", SIGHUP},   {"INT", SIGINT},   {"QUIT", SIGQUIT},  {"KILL", SIGKILL},
                   {"TERM", SIGTERM}, {"USR1", SIGUSR1}, {"USR2", SIGUSR2},  {"STOP", SIGSTOP},
                   {"CONT", SIGCONT}, {"TSTP", SIGTSTP}, {"WINCH", SIGWINCH}};

    name += strncmp(name, "SIG", 3) == 0 ? 3 : 0;
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        if (strcmp(signals[i].name, name) == 0)
            return signals[i].number;
    }
    return -EINVAL;
}

static uint8_t find_scope(const char *scope)
{
    if (scope != NULL && strcmp(scope, "tree") == 0)
        return WIRE_SCOPE_TREE;
    return scope != NULL && strcmp(scope, "process") == 0 ? WIRE_SCOPE_PROCESS : WIRE_SCOPE_GROUP;
}

void execs_signal(struct request *request)
{
    struct call *call = call_of(request);
    struct exec *exec = call_exec(call);
    struct signal_body body = {0};
    struct error err = {0};

    if (exec == NULL || call_take(call, &signal_fields, &body) < 0)
        return;
    int number = find_signal(body.name);
    if (number < 0) {
        call_refuse(call, 400, "invalid_request",
                    "signal: must be one of HUP, INT, QUIT, KILL, TERM, USR1, USR2, STOP, CONT, TSTP, WINCH");
        return;
    }
    writer_text(call_detail(call), "signal", body.name);
    if (exec_signal(exec, (uint32_t)number, find_scope(body.scope), &err) < 0)
        call_fail(call, &err);
    else
        call_answer_empty(call, 204);
}

struct resize_body {
    struct body_number rows;
    struct body_number columns;
};

static const struct body_field resize_items[] = {
    {"rows", BODY_NUMBER, offsetof(struct resize_body, rows), true, 1, UINT16_MAX, NULL, NULL},
    {"columns", BODY_NUMBER, offsetof(struct resize_body, columns), true, 1, UINT16_MAX, NULL, NULL},
};
static const struct body_fields resize_fields = BODY_FIELDS(resize_items);

void execs_resize(struct request *request)
{
    struct call *call = call_of(request);
    struct exec *exec = call_exec(call);
    struct resize_body body = {0};
    struct error err = {0};

    if (exec == NULL || call_take(call, &resize_fields, &body) < 0)
        return;
    if (exec_resize(exec, (uint16_t)body.rows.value, (uint16_t)body.columns.value, &err) < 0)
        call_fail(call, &err);
    else
        call_answer_empty(call, 204);
}
