#include "gateway/surface/tools.h"

#include "base/clock.h"
#include "gateway/surface/plan.h"
#include "gateway/surface/routes.h"
#include "gateway/surface/run.h"

#include <string.h>

enum { NS_PER_MS = 1000000, LIST_BYTES_MAX = 65536, DEFAULT_TIMEOUT_S = 30 };

struct execute_body {
    const char *tool;
    const json_t *arguments;
};

static const struct body_field execute_items[] = {
    {"tool", BODY_TEXT, offsetof(struct execute_body, tool), true, 1, 64, NULL, NULL},
    {"arguments", BODY_VALUE, offsetof(struct execute_body, arguments), false, 0, 0, NULL, NULL},
};
static const struct body_fields execute_fields = BODY_FIELDS(execute_items);

#define RUN(member) offsetof(struct run_wish, member)
static const struct body_field shell_items[] = {
    {"command", BODY_TEXT, RUN(command), true, 1, INT64_MAX, NULL, NULL},
    {"timeout_seconds", BODY_NUMBER, RUN(timeout_seconds), false, 1, RUN_TIMEOUT_MAX_S, NULL, NULL},
    {"workdir", BODY_TEXT, RUN(workdir), false, 1, 4095, NULL, NULL},
    {"env", BODY_MAP, RUN(env), false, 0, 256, NULL, NULL},
    {"stdin", BODY_TEXT, RUN(stdin_text), false, 0, INT64_MAX, NULL, NULL},
    {"encoding", BODY_TEXT, RUN(encoding), false, 0, 0, "utf-8|base64", NULL},
};
static const struct body_fields shell_fields = BODY_FIELDS(shell_items);

struct http_body {
    const char *method;
    const char *url;
    const json_t *headers;
    const char *body;
};

static const struct body_field http_items[] = {
    {"method", BODY_TEXT, offsetof(struct http_body, method), true, 0, 0, "GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS",
     NULL},
    {"url", BODY_TEXT, offsetof(struct http_body, url), true, 1, 8192, NULL, NULL},
    {"headers", BODY_MAP, offsetof(struct http_body, headers), false, 0, 100, NULL, NULL},
    {"body", BODY_TEXT, offsetof(struct http_body, body), false, 0, INT64_MAX, NULL, NULL},
};
static const struct body_fields http_fields = BODY_FIELDS(http_items);

void tools_open_answer(struct call *call, struct writer *writer, const char *tool, bool success)
{
    writer_open(writer, NULL, '{');
    writer_switch(writer, "success", success);
    writer_text(writer, "tool", tool);
    writer_number(writer, "duration_ms", (int64_t)((clock_now_ns() - call->request->start_ns) / NS_PER_MS));
    writer_text(writer, "exec_id", *call->exec != '\0' ? call->exec : NULL);
    writer_open(writer, "result", '{');
}

void tools_close_answer(struct call *call, struct writer *writer)
{
    writer_close(writer, '}');
    writer_close(writer, '}');
    call_answer(call, 200, writer);
}

/* Arguments in `fields`, or that they are not was answered. */
static int take_arguments(struct call *call, const json_t *arguments, const struct body_fields *fields, void *target)
{
    struct error err = {0};

    int r = body_take(arguments, "arguments", fields, target, &err);
    if (r < 0)
        call_fail(call, &err);
    return r;
}

static void shell_ended(struct run *run, const struct exec_result *result)
{
    struct call *call = run->call;
    struct writer writer = writer_init(CALL_ANSWER_MAX);

    tools_open_answer(call, &writer, "shell_exec", result->end == EXEC_EXITED && exec_exit_code(result) == 0);
    run_write_result(run, &writer, result);
    tools_close_answer(call, &writer);
}

static void shell_exec(struct call *call, struct sandbox *sandbox, const json_t *arguments)
{
    struct run *run = call_alloc(call, sizeof *run);

    if (run == NULL || take_arguments(call, arguments, &shell_fields, &run->wish) < 0)
        return;
    if (!run->wish.timeout_seconds.given)
        run->wish.timeout_seconds.value = DEFAULT_TIMEOUT_S;
    run_and_wait(run, call, sandbox, true, shell_ended);
}

static void http_request(struct call *call, struct sandbox *sandbox __attribute__((unused)), const json_t *arguments)
{
    struct http_body body = {0};

    if (take_arguments(call, arguments, &http_fields, &body) < 0)
        return;
    writer_text(call_detail(call), "url", body.url);
    call_refuse(call, 403, "domain_not_allowed", "this sandbox has no network: no host may be reached");
}

#define PROPERTY_PATH "\"path\":{\"type\":\"string\",\"description\":\"absolute, or below /workspace\"}"
#define PROPERTY_ENCODING "\"encoding\":{\"enum\":[\"utf-8\",\"base64\"],\"default\":\"utf-8\"}"
#define OBJECT "{\"type\":\"object\",\"additionalProperties\":false,"

static const struct tool tools[] = {
    {"shell_exec", "Run a command with /bin/sh in the sandbox and wait for its end.",
     OBJECT "\"required\":[\"command\"],\"properties\":{\"command\":{\"type\":\"string\"},"
            "\"timeout_seconds\":{\"type\":\"integer\",\"minimum\":1,\"default\":30},"
            "\"workdir\":{\"type\":\"string\",\"default\":\"/workspace\"},"
            "\"env\":{\"type\":\"object\",\"additionalProperties\":{\"type\":\"string\"}},"
            "\"stdin\":{\"type\":\"string\"}," PROPERTY_ENCODING "}}",
     true, shell_exec},
    {"file_read", "Read a file of the sandbox.",
     OBJECT "\"required\":[\"path\"],\"properties\":{" PROPERTY_PATH "," PROPERTY_ENCODING "}}", true, tool_file_read},
    {"file_write", "Write a file of the sandbox; missing folders above it are made.",
     OBJECT "\"required\":[\"path\",\"content\"],\"properties\":{" PROPERTY_PATH
            ",\"content\":{\"type\":\"string\"}," PROPERTY_ENCODING
            ",\"mode\":{\"type\":\"string\",\"description\":\"w, a to append, or permissions such as 0755\"}}}",
     true, tool_file_write},
    {"file_list", "List a folder of the sandbox.",
     OBJECT "\"properties\":{" PROPERTY_PATH ",\"recursive\":{\"type\":\"boolean\",\"default\":false}}}", true,
     tool_file_list},
    {"http_request", "Send an HTTP request from the sandbox to a host that it may reach.",
     OBJECT "\"required\":[\"method\",\"url\"],\"properties\":{"
            "\"method\":{\"enum\":[\"GET\",\"HEAD\",\"POST\",\"PUT\",\"PATCH\",\"DELETE\",\"OPTIONS\"]},"
            "\"url\":{\"type\":\"string\"},"
            "\"headers\":{\"type\":\"object\",\"additionalProperties\":{\"type\":\"string\"}},"
            "\"body\":{\"type\":\"string\"}}}",
     false, http_request},
};
static const size_t tool_count = sizeof tools / sizeof *tools;

const struct tool *tools_find(const char *name)
{
    for (size_t i = 0; i < tool_count; i++) {
        if (strcmp(tools[i].name, name) == 0)
            return &tools[i];
    }
    return NULL;
}

void tools_write_defaults(struct writer *writer)
{
    for (size_t i = 0; i < tool_count; i++) {
        if (tools[i].is_default)
            writer_text(writer, NULL, tools[i].name);
    }
}

void tools_list(struct request *request)
{
    struct writer writer = writer_init(LIST_BYTES_MAX);

    writer_open(&writer, NULL, '{');
    writer_open(&writer, "tools", '[');
    for (size_t i = 0; i < tool_count; i++) {
        writer_open(&writer, NULL, '{');
        writer_text(&writer, "name", tools[i].name);
        writer_text(&writer, "description", tools[i].description);
        writer_json(&writer, "parameters", tools[i].schema);
        writer_close(&writer, '}');
    }
    writer_close(&writer, ']');
    writer_number(&writer, "count", (int64_t)tool_count);
    writer_close(&writer, '}');
    call_answer(call_of(request), 200, &writer);
}

static bool is_allowed(const struct sandbox *sandbox, const char *name)
{
    _cleanup_body_ json_t *extra = plan_extra(sandbox);
    size_t i;
    json_t *tool;

    json_array_foreach(json_object_get(extra, "tools"), i, tool)
    {
        if (strcmp(json_string_value(tool), name) == 0)
            return true;
    }
    return false;
}

void tools_execute(struct request *request)
{
    struct call *call = call_of(request);
    struct sandbox *sandbox = call_sandbox(call);
    struct execute_body body = {0};

    if (sandbox == NULL || call_take(call, &execute_fields, &body) < 0)
        return;
    const struct tool *tool = tools_find(body.tool);
    writer_text(call_detail(call), "tool", body.tool);
    if (tool == NULL) {
        call_refuse(call, 400, "invalid_request", "tool: there is no tool %s; GET /api/v1/tools lists them", body.tool);
        return;
    }
    if (!is_allowed(sandbox, tool->name)) {
        call_refuse(call, 403, "tool_not_allowed", "this sandbox was made without the tool %s", tool->name);
        return;
    }
    _cleanup_body_ json_t *none = json_object();
    tool->run(call, sandbox, body.arguments != NULL ? body.arguments : none);
}
