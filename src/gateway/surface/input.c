/*
 * Standard input of an exec, as it comes; with ?end=true the end of it as well. With ?offset=N the body's first byte is
 * byte N of all of it: what was written before is left out, so that a client whose connection broke may just send it
 * again. It is answered when init has it, or nobody wants it: a gateway that ends then loses none of it.
 */
#include "gateway/surface/call.h"
#include "gateway/surface/routes.h"

enum { HELD_MAX = 1 << 20 };

struct input {
    struct call *call;
    struct buf held;
    size_t start;
    uint64_t offset; /* UINT64_MAX: not given, or settled */
    uint64_t skip;   /* bytes of the body that were written before */
    bool has_offset;
    bool ends;
    bool is_taken;   /* all bytes of it */
    bool is_written; /* all of it, its end as well */
    bool has_end;
    bool is_paused;
    bool is_waiting;
};

static void input_push(struct input *input);

static struct exec *input_exec(const struct input *input)
{
    return exec_find(input->call->surface->options.engine, input->call->exec, NULL);
}

/* The next piece of the body may come from within the call. */
static void input_resume(struct input *input)
{
    bool was_paused = input->is_paused;

    input->is_paused = false;
    if (was_paused)
        request_resume(input->call->request);
}

static void input_stop(struct input *input)
{
    struct exec *exec = input_exec(input);

    if (input->is_waiting && exec != NULL)
        exec_on_room(exec, NULL, NULL);
    input->call->request->events = NULL;
    input_resume(input);
    buf_release(&input->held);
}

static void input_fail(struct input *input, const struct error *err)
{
    input_stop(input);
    call_fail(input->call, err);
}

static void input_room(void *data, struct exec *exec __attribute__((unused)), const struct error *err)
{
    struct input *input = data;

    input->is_waiting = false;
    if (err != NULL)
        input_fail(input, err);
    else
        input_push(input);
}

static void input_taken(struct input *input)
{
    input->held.length = 0;
    input->start = 0;
    if (input->has_end) {
        input_stop(input);
        call_answer_empty(input->call, 204);
        return;
    }
    input_resume(input);
}

static void input_wait(struct input *input, struct exec *exec)
{
    if (!input->is_paused && !input->has_end) {
        input->is_paused = true;
        request_pause(input->call->request);
    }
    input->is_waiting = true;
    exec_on_room(exec, input_room, input);
}

/*
 * Leave out what was written before. False: it was answered that something is missing in between. Nothing is missed by
 * a command that reads no more; after a restart of the gateway, what was thrown away is not in stdin_next.
 */
static bool input_place(struct input *input, const struct exec_info *info)
{
    if (info->is_stdin_closed && input->offset != UINT64_MAX && input->offset > info->stdin_next)
        input->offset = UINT64_MAX;
    if (input->offset != UINT64_MAX && input->offset > info->stdin_next) {
        input_stop(input);
        call_refuse(input->call, 409, "stdin_gap", "offset: standard input goes on at %llu",
                    (unsigned long long)info->stdin_next);
        return false;
    }
    if (input->offset != UINT64_MAX) {
        input->skip = info->stdin_next - input->offset;
        input->offset = UINT64_MAX;
    }
    size_t left = input->held.length - input->start;
    size_t known = input->skip < left ? (size_t)input->skip : left;
    input->start += known;
    input->skip -= known;
    return true;
}

/* What there is of it, as far as there is room. */
static void input_write(struct input *input, struct exec *exec, struct exec_info *info)
{
    struct error err = {0};
    size_t taken = 0;
    size_t left = input->held.length - input->start;
    bool is_end = input->has_end && input->ends;
    /* All that came of it was written before, its end perhaps too: the answer to that was lost. */
    bool is_repeated = input->has_offset && left == 0 && (info->stdin_ended || !input->has_end);

    if (!is_repeated && exec_write(exec, input->held.data + input->start, left, is_end, &taken, &err) < 0) {
        input_fail(input, &err);
        return;
    }
    input->start += taken;
    exec_get(exec, info);
    input->is_taken = input->has_end && taken == left;
    input->is_written = input->is_taken && (!is_end || info->stdin_ended);
    if (taken < left || (input->is_taken && (!input->is_written || !exec_has_input(exec))))
        input_wait(input, exec);
    else
        input_taken(input);
}

static void input_push(struct input *input)
{
    struct exec *exec = input_exec(input);
    struct exec_info info;
    struct error err = {0};

    if (exec != NULL)
        exec_get(exec, &info);
    bool is_running = exec != NULL && info.state == EXEC_RUNNING;
    if ((input->is_taken && !is_running) || (input->is_written && exec_has_input(exec))) {
        input_taken(input);
        return;
    }
    if (exec == NULL) {
        (void)error_set(&err, ERROR_INVALID, ESHUTDOWN, "the exec has ended");
        input_fail(input, &err);
        return;
    }
    if (exec_is_written(exec)) {
        input_stop(input);
        call_refuse(input->call, 409, "busy", "another call is still writing to this exec");
        return;
    }
    if (input->is_written || (is_running && !info.is_stdin_known))
        input_wait(input, exec);
    else if (input_place(input, &info))
        input_write(input, exec, &info);
}

static void input_body(struct request *request, const void *data, size_t length)
{
    struct input *input = call_of(request)->state;

    input->has_end = length == 0;
    if (buf_append(&input->held, data, length) < 0) {
        input_stop(input);
        call_refuse_memory(input->call);
        return;
    }
    if (!input->is_waiting)
        input_push(input);
}

static void input_gone(struct request *request)
{
    struct call *call = call_of(request);

    input_stop(call->state);
    call->verdict = STORE_FAILED;
    call_answer_empty(call, 499);
}

void input_post(struct request *request)
{
    static const char *const parameters[] = {"end", "offset", NULL};
    static const struct request_events events = {.body = input_body, .gone = input_gone};
    struct call *call = call_of(request);
    bool ends = false;
    uint64_t offset = UINT64_MAX;

    const struct exec *exec = call_exec(call);
    if (exec == NULL || call_query_only(call, parameters) < 0 || call_query_switch(call, "end", &ends) < 0 ||
        call_query_number(call, "offset", 0, INT64_MAX, &offset) < 0)
        return;
    if (exec_is_written(exec)) {
        call_refuse(call, 409, "busy", "another call is still writing to this exec");
        return;
    }
    struct input *input = call_alloc(call, sizeof *input);
    if (input == NULL)
        return;
    *input = (struct input){
        .call = call, .held = buf_init(HELD_MAX), .ends = ends, .offset = offset, .has_offset = offset != UINT64_MAX};
    call->state = input;
    request->events = &events;
}
