/*
 * Creating takes up to three steps: the engine makes it, the files of the body are written into it one after the other,
 * and then it is answered. One whose files can't be written is destroyed again.
 */
#include "gateway/surface/call.h"
#include "gateway/surface/plan.h"
#include "gateway/surface/routes.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIST_BYTES_MAX = 16 << 20, FILE_MODE = 0644 };

struct creation {
    struct call *call;
    struct plan_body body;
    struct plan plan;
    size_t next_file;
    struct file_job *job;
    const uint8_t *data; /* of the file that is being written */
    size_t left;
    uint8_t *decoded;
    struct error failure;
};

static void end_creation(struct creation *creation)
{
    free(creation->decoded);
    creation->decoded = NULL;
    plan_release(&creation->plan);
}

static void write_next(struct creation *creation);

static void destroyed(void *data, struct sandbox *sandbox __attribute__((unused)),
                      const struct error *err __attribute__((unused)))
{
    struct creation *creation = data;

    call_fail_file(creation->call, &creation->failure);
}

static void give_up(struct creation *creation, const struct error *err)
{
    struct call *call = creation->call;
    struct sandbox *sandbox = sandbox_find(call->surface->options.engine, call->sandbox, NULL);

    end_creation(creation);
    creation->failure = *err;
    if (sandbox != NULL)
        sandbox_destroy(sandbox, SANDBOX_DESTROYED, destroyed, creation);
    else
        call_fail_file(call, &creation->failure);
}

static void answer_created(struct creation *creation)
{
    struct call *call = creation->call;
    struct sandbox *sandbox = sandbox_find(call->surface->options.engine, call->sandbox, NULL);
    struct writer writer = writer_init(CALL_ANSWER_MAX);
    char location[80];

    end_creation(creation);
    if (sandbox == NULL) {
        call_refuse(call, 409, "not_running", "sandbox %s has ended already", call->sandbox);
        return;
    }
    (void)snprintf(location, sizeof location, "/api/v1/sandboxes/%s", call->sandbox);
    ignore_result(request_set_header(call->request, "Location", location)); /* the id is in the body too */
    plan_show(&writer, NULL, sandbox);
    call_answer(call, 201, &writer);
}

static void push_file(void *data, struct file_job *job)
{
    struct creation *creation = data;
    size_t taken = file_write(job, creation->data, creation->left, true);

    creation->data += taken;
    creation->left -= taken;
}

static void file_written(void *data, struct file_job *job __attribute__((unused)), const struct error *err)
{
    struct creation *creation = data;
    struct error failure;

    free(creation->decoded);
    creation->decoded = NULL;
    if (err == NULL) {
        creation->next_file++;
        write_next(creation);
        return;
    }
    failure = *err;
    error_wrap(&failure, "files.%.200s", creation->plan.files[creation->next_file].path);
    give_up(creation, &failure);
}

static int decode(struct creation *creation, const struct plan_file *file, struct error *err)
{
    size_t length = strlen(file->base64 != NULL ? file->base64 : file->text);
    const char *end = NULL;

    creation->data = (const uint8_t *)file->text;
    creation->left = length;
    if (file->text != NULL)
        return 0;
    creation->decoded = malloc(length + 1);
    if (creation->decoded == NULL)
        return error_set(err, ERROR_SYSTEM, ENOMEM, "files.%.200s", file->path);
    if (sodium_base642bin(creation->decoded, length + 1, file->base64, length, NULL, &creation->left, &end,
                          sodium_base64_VARIANT_ORIGINAL) < 0 ||
        *end != '\0')
        return error_set(err, ERROR_INVALID, 0, "files.%.200s.base64: is not base64", file->path);
    creation->data = creation->decoded;
    return 0;
}

static int start_file(struct creation *creation, struct error *err)
{
    static const struct file_callbacks callbacks = {.room = push_file, .ended = file_written};
    const struct plan_file *file = &creation->plan.files[creation->next_file];
    struct call *call = creation->call;
    struct sandbox *sandbox = sandbox_find(call->surface->options.engine, call->sandbox, NULL);

    if (sandbox == NULL)
        return error_set(err, ERROR_INVALID, ESHUTDOWN, "sandbox %s has ended already", call->sandbox);
    int r = decode(creation, file, err);
    if (r < 0)
        return r;
    struct file_question question = {.operation = WIRE_FILE_WRITE,
                                     .flags = WIRE_FILE_PARENTS,
                                     .uid = plan_user(sandbox),
                                     .mode = FILE_MODE,
                                     .length = creation->left,
                                     .path = file->path};
    r = file_start(sandbox, &question, &callbacks, creation, &creation->job, err);
    if (r == 0)
        push_file(creation, creation->job);
    return r;
}

static void write_next(struct creation *creation)
{
    struct error err = {0};

    if (creation->next_file == creation->plan.file_count)
        answer_created(creation);
    else if (start_file(creation, &err) < 0)
        give_up(creation, &err);
}

static void created(void *data, struct sandbox *sandbox __attribute__((unused)), const struct error *err)
{
    struct creation *creation = data;

    if (err != NULL) {
        struct error failure = *err;
        end_creation(creation);
        call_fail(creation->call, &failure);
        return;
    }
    write_next(creation);
}

void sandboxes_create(struct request *request)
{
    struct call *call = call_of(request);
    struct creation *creation = call_alloc(call, sizeof *creation);
    struct sandbox *sandbox = NULL;
    struct sandbox_info info;
    struct error err = {0};

    if (creation == NULL || call_take(call, &plan_fields, &creation->body) < 0)
        return;
    creation->call = call;
    int r = plan_make(call, &creation->body, &creation->plan, &err);
    if (r == 0)
        r = sandbox_create(call->surface->options.engine, &creation->plan.settings, created, creation, &sandbox, &err);
    if (r < 0) {
        end_creation(creation);
        call_fail(call, &err);
        return;
    }
    sandbox_get(sandbox, &info);
    (void)snprintf(call->sandbox, sizeof call->sandbox, "%s", info.id);
    writer_text(call_detail(call), "profile", creation->body.profile);
}

static bool is_wanted(struct call *call, const struct sandbox_info *info)
{
    const char *agent = request_query(call->request, "agent");
    const char *status = request_query(call->request, "status");

    if (agent != NULL && (info->settings->agent == NULL || strcmp(agent, info->settings->agent) != 0))
        return false;
    return status == NULL || strcmp(status, sandbox_state_name(info->state)) == 0;
}

static int check_status(struct call *call)
{
    const char *status = request_query(call->request, "status");

    for (enum sandbox_state state = 0; status != NULL && state < SANDBOX_STATES; state++) {
        if (strcmp(status, sandbox_state_name(state)) == 0)
            return 0;
    }
    if (status == NULL)
        return 0;
    call_refuse(call, 400, "invalid_request", "status: must be a state such as running or paused");
    return -EINVAL;
}

void sandboxes_list(struct request *request)
{
    static const char *const parameters[] = {"agent", "status", NULL};
    struct call *call = call_of(request);
    struct writer writer = writer_init(LIST_BYTES_MAX);
    struct call_page page;
    uint64_t count = 0;
    struct sandbox_info info = {0};

    if (call_query_page(call, parameters, &page) < 0 || check_status(call) < 0)
        return;
    struct sandbox *sandbox = sandbox_after(call->surface->options.engine, page.cursor, call_owner(call));
    writer_open(&writer, NULL, '{');
    writer_open(&writer, "sandboxes", '[');
    for (; sandbox != NULL && count < page.limit;
         sandbox = sandbox_after(call->surface->options.engine, page.cursor, call_owner(call))) {
        sandbox_get(sandbox, &info);
        page.cursor = info.order;
        if (!is_wanted(call, &info))
            continue;
        plan_show(&writer, NULL, sandbox);
        count++;
    }
    call_answer_page(call, &writer, count, sandbox != NULL ? page.cursor : 0);
}

static void answer_shown(struct call *call, const struct sandbox *sandbox)
{
    struct writer writer = writer_init(CALL_ANSWER_MAX);

    plan_show(&writer, NULL, sandbox);
    call_answer(call, 200, &writer);
}

void sandboxes_get(struct request *request)
{
    struct call *call = call_of(request);
    struct sandbox *sandbox = call_sandbox(call);

    if (sandbox != NULL)
        answer_shown(call, sandbox);
}

static void deleted(void *data, struct sandbox *sandbox __attribute__((unused)), const struct error *err)
{
    if (err != NULL)
        call_fail(data, err);
    else
        call_answer_empty(data, 204);
}

void sandboxes_delete(struct request *request)
{
    struct call *call = call_of(request);
    struct sandbox *sandbox = call_sandbox(call);

    if (sandbox != NULL)
        sandbox_destroy(sandbox, SANDBOX_DESTROYED, deleted, call);
}

static void changed(void *data, struct sandbox *sandbox, const struct error *err)
{
    if (err != NULL)
        call_fail(data, err);
    else
        answer_shown(data, sandbox);
}

static const struct body_fields no_fields;

static void change(struct request *request,
                   int (*to)(struct sandbox *sandbox, sandbox_done done, void *data, struct error *err))
{
    struct call *call = call_of(request);
    struct sandbox *sandbox = call_sandbox(call);
    struct error err = {0};

    if (sandbox == NULL || call_take(call, &no_fields, NULL) < 0)
        return;
    if (to(sandbox, changed, call, &err) < 0)
        call_fail(call, &err);
}

void sandboxes_pause(struct request *request)
{
    change(request, sandbox_pause);
}

void sandboxes_resume(struct request *request)
{
    change(request, sandbox_resume);
}

static void measured(void *data, const struct sandbox_usage *usage, const struct error *err)
{
    struct call *call = data;
    struct writer writer = writer_init(CALL_ANSWER_MAX);

    if (err != NULL) {
        call_fail(call, err);
        return;
    }
    writer_open(&writer, NULL, '{');
    writer_text(&writer, "id", call->sandbox);
    writer_number(&writer, "cpu_time_ms", (int64_t)(usage->cpu_us / 1000));
    writer_number(&writer, "memory_bytes", (int64_t)usage->memory_bytes);
    writer_number(&writer, "memory_peak_bytes", (int64_t)usage->memory_peak_bytes);
    writer_number(&writer, "processes", usage->processes);
    writer_number(&writer, "processes_peak", usage->processes_peak);
    writer_number(&writer, "processes_refused", usage->processes_refused);
    writer_number(&writer, "oom_kills", usage->oom_kills);
    if (usage->disk_free_inodes != 0)
        writer_number(&writer, "disk_free_bytes", (int64_t)usage->disk_free_bytes);
    else
        writer_null(&writer, "disk_free_bytes");
    writer_close(&writer, '}');
    call_answer(call, 200, &writer);
}

void sandboxes_usage(struct request *request)
{
    struct call *call = call_of(request);
    struct sandbox *sandbox = call_sandbox(call);
    struct error err = {0};

    if (sandbox != NULL && sandbox_measure(sandbox, measured, call, &err) < 0)
        call_fail(call, &err);
}
