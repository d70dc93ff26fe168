#include "gateway/surface/call.h"

#include "base/parse.h"
#include "gateway/store/batch.h"
#include "gateway/surface/errors.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MESSAGE_SIZE = 640, PAGE_DEFAULT = 100, PAGE_MAX = 1000, PARAMETERS_MAX = 8 };

static const char type_json[] = "application/json";

struct call *call_make(struct request *request, struct surface *surface)
{
    struct call *call = request_alloc(request, sizeof *call);

    if (call == NULL)
        return NULL;
    *call = (struct call){.request = request,
                          .surface = surface,
                          .detail = writer_init(CALL_DETAIL_MAX),
                          .answer = buf_init(CALL_ANSWER_MAX),
                          .type = type_json};
    request->principal = call;
    return call;
}

/* What the arena does not hold. The request itself is ended by whoever calls this. */
static void release(struct call *call)
{
    writer_release(&call->detail);
    buf_release(&call->answer);
    json_decref(call->body);
    call->body = NULL;
}

void *call_alloc(struct call *call, size_t size)
{
    void *memory = request_alloc(call->request, size);

    if (memory == NULL)
        call_refuse_memory(call);
    else
        memset(memory, 0, size);
    return memory;
}

const char *call_owner(const struct call *call)
{
    return call->principal.scope == STORE_SCOPE_RUN ? call->principal.id : NULL;
}

int call_take(struct call *call, const struct body_fields *fields, void *target)
{
    struct error err = {0};

    int r = body_parse(call->request->body.data, call->request->body.length, &call->body, &err);
    if (r == 0)
        r = body_take(call->body, "", fields, target, &err);
    if (r < 0)
        call_fail(call, &err);
    return r;
}

struct sandbox *call_sandbox(struct call *call)
{
    const char *id = request_parameter(call->request, "id");
    struct sandbox *sandbox = id == NULL ? NULL : sandbox_find(call->surface->options.engine, id, call_owner(call));

    if (sandbox == NULL) {
        call_refuse(call, 404, "not_found", "there is no sandbox %s", id != NULL ? id : "");
        return NULL;
    }
    (void)snprintf(call->sandbox, sizeof call->sandbox, "%s", id);
    return sandbox;
}

static struct exec *find_exec(struct call *call, const char *id)
{
    return id == NULL ? NULL : exec_find(call->surface->options.engine, id, call_owner(call));
}

bool call_has_exec(struct call *call)
{
    return find_exec(call, request_parameter(call->request, "eid")) != NULL;
}

struct exec *call_exec(struct call *call)
{
    const char *id = request_parameter(call->request, "eid");
    struct exec *exec = find_exec(call, id);
    struct exec_info info;

    if (exec == NULL) {
        call_refuse(call, 404, "not_found", "there is no exec %s; results are kept for a while only",
                    id != NULL ? id : "");
        return NULL;
    }
    exec_get(exec, &info);
    (void)snprintf(call->exec, sizeof call->exec, "%s", id);
    (void)snprintf(call->sandbox, sizeof call->sandbox, "%s", info.sandbox);
    return exec;
}

int call_query_number(struct call *call, const char *name, uint64_t least, uint64_t most, uint64_t *number)
{
    const char *text = request_query(call->request, name);
    uint64_t value;

    if (text == NULL)
        return 0;
    if (parse_u64(text, &value) < 0 || value < least || value > most) {
        call_refuse(call, 400, "invalid_request", "%s: must be a whole number from %llu to %llu", name,
                    (unsigned long long)least, (unsigned long long)most);
        return -EINVAL;
    }
    *number = value;
    return 0;
}

int call_last_event(struct call *call, uint64_t *number)
{
    const char *text = request_header(call->request, "Last-Event-ID");
    uint64_t value;

    if (text == NULL)
        return 0;
    if (parse_u64(text, &value) < 0 || value > INT64_MAX) {
        call_refuse(call, 400, "invalid_request", "Last-Event-ID: must be the id of an event");
        return -EINVAL;
    }
    if (request_query(call->request, "after") == NULL)
        *number = value;
    return 0;
}

int call_query_switch(struct call *call, const char *name, bool *value)
{
    const char *text = request_query(call->request, name);

    if (text == NULL)
        return 0;
    if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0) {
        call_refuse(call, 400, "invalid_request", "%s: must be true or false", name);
        return -EINVAL;
    }
    *value = *text == 't';
    return 0;
}

static bool is_among(const char *const *names, const char *name)
{
    for (; *names != NULL; names++) {
        if (strcmp(*names, name) == 0)
            return true;
    }
    return false;
}

int call_query_only(struct call *call, const char *const *names)
{
    const struct target *target = &call->request->target;

    for (size_t i = 0; i < target->query_count; i++) {
        const char *name = target->query[i].name;
        if (is_among(names, name) && request_query(call->request, name) == target->query[i].value)
            continue;
        if (is_among(names, name)) {
            call_refuse(call, 400, "invalid_request", "%.64s: was given twice", name);
            return -EINVAL;
        }
        call_refuse(call, 400, "invalid_request", "%.64s: there is no such query parameter", target->query[i].name);
        return -EINVAL;
    }
    return 0;
}

int call_query_page(struct call *call, const char *const *others, struct call_page *ret_page)
{
    const char *names[PARAMETERS_MAX + 1] = {"limit", "cursor"};
    struct call_page page = {.limit = PAGE_DEFAULT};

    for (size_t i = 2; others != NULL && *others != NULL && i < PARAMETERS_MAX; i++)
        names[i] = *others++;
    int r = call_query_only(call, names);
    if (r == 0)
        r = call_query_number(call, "limit", 1, PAGE_MAX, &page.limit);
    if (r == 0)
        r = call_query_number(call, "cursor", 0, INT64_MAX, &page.cursor);
    if (r == 0)
        *ret_page = page;
    return r;
}

struct writer *call_detail(struct call *call)
{
    if (!call->has_detail)
        writer_open(&call->detail, NULL, '{');
    call->has_detail = true;
    return &call->detail;
}

static void finish_detail(struct call *call)
{
    struct writer *detail = call_detail(call);
    const struct request *request = call->request;

    writer_text(detail, "request_id", request->id);
    writer_text(detail, "method", http_method_name(request->method));
    writer_text(detail, "path", request->target.path);
    writer_text(detail, "peer", request->peer->kind == PEER_TCP ? request->peer->address : "unix");
    if (call->status != 0)
        writer_number(detail, "status", call->status);
    writer_close(detail, '}');
    if (buf_append(&detail->buf, "", 1) < 0)
        detail->result = -ENOBUFS;
}

void call_answer_error(struct request *request, unsigned status, const char *code, const char *message)
{
    struct buf body = buf_init(ERRORS_BODY_MAX);

    ignore_result(errors_write(&body, code, message, request->id)); /* an empty body then */
    request_answer(request, status, type_json, body.data, body.length);
    buf_release(&body);
}

static void answer_unrecorded(struct call *call, int result, const char *message)
{
    struct error err = {0};
    struct refusal refusal;

    errors_from_store(&err, result, message);
    refusal = errors_of(&err);
    struct request *request = call->request;
    release(call);
    call_answer_error(request, refusal.status, refusal.code, err.message);
}

static void recorded(void *data, const struct store_outcome *outcome)
{
    struct call *call = data;

    if (outcome->result < 0) {
        answer_unrecorded(call, outcome->result, outcome->message);
        return;
    }
    call->is_recorded = true;
    call->then(call);
}

static struct batch *make_batch(struct call *call)
{
    const struct call_kind *kind = call->request->route != NULL ? call->request->route->extra : NULL;
    struct store_audit audit = {.principal = *call->principal.id != '\0' ? call->principal.id : NULL,
                                .agent = *call->agent != '\0' ? call->agent : NULL,
                                .sandbox = *call->sandbox != '\0' ? call->sandbox : NULL,
                                .exec = *call->exec != '\0' ? call->exec : NULL,
                                .action = kind != NULL ? kind->action : "request",
                                .verdict = call->verdict};
    struct batch *batch = batch_new(call->surface->options.store);

    if (batch == NULL)
        return NULL;
    finish_detail(call);
    /* A command too long for the record is left out of it rather than refused: its hash is in the exec's own. */
    audit.detail = writer_end(&call->detail) == 0 ? (const char *)call->detail.buf.data : "{\"detail\":\"too long\"}";
    batch_add_audit(batch, &audit);
    return batch;
}

void call_record(struct call *call, call_then then)
{
    struct batch *batch = make_batch(call);

    call->then = then;
    if (batch == NULL || batch_submit(batch, recorded, call) == NULL)
        answer_unrecorded(call, -ENOMEM, NULL);
}

static void send_answer(struct call *call)
{
    struct request *request = call->request;
    struct buf answer = call->answer;

    call->answer = buf_init(0);
    release(call);
    request_answer(request, call->status, answer.length > 0 ? call->type : NULL, answer.data, answer.length);
    buf_release(&answer);
}

static void recorded_early(void *data, const struct store_outcome *outcome)
{
    struct call *call = data;

    call->is_recording = false;
    call->is_recorded = outcome->result == 0;
    call->record_result = outcome->result;
    if (!call->waits_to_answer)
        return;
    if (call->is_recorded)
        send_answer(call);
    else
        answer_unrecorded(call, outcome->result, outcome->message);
}

void call_record_early(struct call *call)
{
    struct batch *batch = make_batch(call);

    call->is_recording = batch != NULL && batch_submit(batch, recorded_early, call) != NULL;
    call->record_result = call->is_recording ? 0 : -ENOMEM;
}

static void record_and_send(struct call *call)
{
    if (call->is_recorded)
        send_answer(call);
    else if (call->is_recording)
        call->waits_to_answer = true;
    else if (call->record_result < 0)
        answer_unrecorded(call, call->record_result, NULL);
    else
        call_record(call, send_answer);
}

void call_answer(struct call *call, unsigned status, struct writer *writer)
{
    struct error err = {0};
    int r = writer_end(writer);

    if (r == 0)
        r = buf_append(&writer->buf, "\n", 1);
    buf_release(&call->answer);
    call->answer = writer->buf;
    if (r < 0) {
        (void)error_set(&err, r == -ENOBUFS ? ERROR_LIMIT : ERROR_SYSTEM, r == -ENOBUFS ? EFBIG : -r,
                        "writing the answer");
        call_fail(call, &err);
        return;
    }
    call->status = status;
    record_and_send(call);
}

void call_answer_page(struct call *call, struct writer *writer, uint64_t count, uint64_t next)
{
    writer_close(writer, ']');
    writer_number(writer, "count", (int64_t)count);
    if (next != 0)
        writer_number(writer, "next_cursor", (int64_t)next);
    else
        writer_null(writer, "next_cursor");
    writer_close(writer, '}');
    call_answer(call, 200, writer);
}

void call_answer_empty(struct call *call, unsigned status)
{
    buf_release(&call->answer);
    call->status = status;
    record_and_send(call);
}

static enum store_verdict verdict_of(unsigned status)
{
    if (status >= 500)
        return STORE_FAILED;
    return status == 401 || status == 403 || status == 421 || status == 429 ? STORE_DENIED : STORE_FAILED;
}

/* Whoever has no credential can't fill the log: what is only counted needs no record any more (strangers.h). */
static void note_stranger(struct call *call, const char *code)
{
    enum strangers_verdict verdict = surface_note_stranger(call->surface, call->request->peer, code);

    call->is_recorded = call->is_recorded || verdict == STRANGERS_COUNTED;
    if (verdict == STRANGERS_RECORD_LAST)
        writer_text(call_detail(call), "more", "counted");
}

static void refuse_with(struct call *call, unsigned status, const char *code, const char *message)
{
    buf_release(&call->answer);
    call->answer = buf_init(ERRORS_BODY_MAX);
    if (errors_write(&call->answer, code, message, call->request->id) < 0)
        buf_release(&call->answer);
    call->status = status;
    call->type = type_json;
    call->verdict = verdict_of(status);
    if (*call->principal.id == '\0')
        note_stranger(call, code);
    writer_text(call_detail(call), "error", code);
    writer_text(call_detail(call), "message", message);
    if (status == 429 &&
        request_set_header(call->request, "Retry-After", *call->retry_seconds != '\0' ? call->retry_seconds : "1") < 0)
        call->status = 503;
    record_and_send(call);
}

void call_refuse(struct call *call, unsigned status, const char *code, const char *format, ...)
{
    char message[MESSAGE_SIZE];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    refuse_with(call, status, code, message);
}

void call_refuse_memory(struct call *call)
{
    call_refuse(call, 503, "unavailable", "there is not enough memory for this request");
}

void call_refuse_unread(struct call *call, const char *message)
{
    call_refuse(call, 503, "unavailable", "the store can't be read now: %s", message != NULL ? message : "");
}

void call_fail(struct call *call, const struct error *err)
{
    struct refusal refusal = errors_of(err);

    refuse_with(call, refusal.status, refusal.code, err->message);
}

void call_fail_file(struct call *call, const struct error *err)
{
    struct refusal refusal = errors_of_file(err);

    refuse_with(call, refusal.status, refusal.code, err->message);
}

void call_finish(struct call *call)
{
    struct request *request = call->request;

    release(call);
    request_finish(request);
}

void call_abort(struct call *call)
{
    struct request *request = call->request;

    release(call);
    request_abort(request);
}
