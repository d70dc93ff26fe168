/*
 * The engine between a keeper, an init and a recorder that are all us. The recorder answers when the loop has nothing
 * else to do, and keeps account of what it was given.
 */
#pragma once

#include "base/cleanup.h"
#include "base/fd.h"
#include "gateway/engine/internal.h"
#include "test.h"
#include "wire/link.h"
#include "wire/steps.h"

#include <stdlib.h>

enum { ANSWERS_MAX = 256, MANY = 100 };

struct fixture {
    uv_loop_t loop;
    struct engine *engine;
    struct recorder recorder;
    uv_idle_t idle;
    struct {
        recorder_done done;
        void *request;
        int status;
    } waiting[ANSWERS_MAX];
    size_t waiting_count;
    int keeper; /* our end as the keeper */
    int guest;  /* our end as init */
    struct wire_message message;
    uint8_t frame[WIRE_FRAME_MAX];
    bool is_closed;
    bool is_done;
    struct error err;
    enum sandbox_state recorded_state;
    enum sandbox_reason recorded_reason;
    uint64_t recorded_caps[EXEC_STREAMS]; /* of the exec that was started last */
    int output_status;                    /* what output() and end() are answered with */
    bool is_full;
    bool is_stuck;  /* nothing is answered */
    size_t outputs; /* calls */
    size_t end_tries;
    size_t ends;
    struct exec_result result;
    uint64_t stored_first; /* what output() was given: the first piece after a gap */
    uint64_t stored_next;
    size_t gaps;
    bool has_spools;
    int spool_status; /* what its writes are answered with */
    size_t spools;    /* that are there */
    size_t spools_made;
    size_t spools_removed;
    uint64_t spooled_next;
    uint64_t spooled_well; /* up to here, without an error */
    size_t spooled_bytes;
};

static inline void answer(uv_idle_t *idle)
{
    struct fixture *f = idle->data;
    size_t count = f->waiting_count;

    if (f->is_stuck)
        return;
    for (size_t i = 0; i < count; i++)
        f->waiting[i].done(f->waiting[i].request, f->waiting[i].status);
    f->waiting_count -= count;
    memmove(f->waiting, f->waiting + count, f->waiting_count * sizeof *f->waiting);
    if (f->waiting_count == 0)
        (void)uv_idle_stop(idle);
}

static inline void answer_with(struct fixture *f, recorder_done done, void *request, int status)
{
    if (done == NULL)
        return;
    assert_true(f->waiting_count < ANSWERS_MAX);
    f->waiting[f->waiting_count].done = done;
    f->waiting[f->waiting_count].status = status;
    f->waiting[f->waiting_count++].request = request;
    (void)uv_idle_start(&f->idle, answer);
}

static inline void wait_for_answer(struct fixture *f, recorder_done done, void *request)
{
    answer_with(f, done, request, 0);
}

static inline void record_a_sandbox(void *context, const struct recorder_sandbox *what, recorder_done done,
                                    void *request)
{
    struct fixture *f = context;

    f->recorded_state = what->state;
    f->recorded_reason = what->reason;
    wait_for_answer(f, done, request);
}

static inline void record_an_exec(void *context, const struct recorder_exec *what, recorder_done done, void *request)
{
    struct fixture *f = context;

    f->recorded_caps[0] = what->settings->stdout_cap;
    f->recorded_caps[1] = what->settings->stderr_cap;
    wait_for_answer(f, done, request);
}

static inline void note_pieces(struct fixture *f, const struct recorder_output *pieces, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (pieces[i].seq != f->stored_next) {
            f->gaps++;
            f->stored_first = pieces[i].seq;
        }
        assert_true(pieces[i].seq >= f->stored_next && pieces[i].length > 0);
        f->stored_next = pieces[i].seq + pieces[i].length;
    }
}

static inline void record_output(void *context, const struct recorder_output *pieces, size_t count, recorder_done done,
                                 void *request)
{
    struct fixture *f = context;

    assert_in_range(count, 1, RECORDER_PIECES);
    f->outputs++;
    if (f->output_status == 0)
        note_pieces(f, pieces, count);
    answer_with(f, done, request, f->output_status);
}

static inline bool has_room(void *context)
{
    return !((struct fixture *)context)->is_full;
}

static inline struct recorder_spool *make_spool(void *context, const char *exec, uint64_t cap)
{
    struct fixture *f = context;

    (void)exec;
    assert_true(cap >= EXEC_STREAM_CAP_MIN);
    if (!f->has_spools)
        return NULL;
    f->spools++;
    f->spools_made++;
    f->spooled_next = UINT64_MAX;
    return (struct recorder_spool *)context;
}

static inline void write_spool(struct recorder_spool *spool, const struct recorder_output *pieces, size_t count,
                               recorder_done done, void *request)
{
    struct fixture *f = (struct fixture *)(void *)spool;

    assert_in_range(count, 1, RECORDER_PIECES);
    for (size_t i = 0; i < count; i++) {
        assert_true(f->spooled_next == UINT64_MAX || pieces[i].seq == f->spooled_next);
        f->spooled_next = pieces[i].seq + pieces[i].length;
        f->spooled_bytes += pieces[i].length;
    }
    f->spooled_well = f->spool_status == 0 ? f->spooled_next : f->spooled_well;
    answer_with(f, done, request, f->spool_status);
}

static inline void end_spool(struct recorder_spool *spool, bool remove)
{
    struct fixture *f = (struct fixture *)(void *)spool;

    assert_true(f->spools > 0);
    f->spools--;
    f->spools_removed += remove;
}

static inline void record_end(void *context, const struct recorder_end *what, recorder_done done, void *request)
{
    struct fixture *f = context;

    assert_true(what->piece_count <= RECORDER_PIECES);
    f->end_tries++;
    if (f->output_status == 0) {
        note_pieces(f, what->pieces, what->piece_count);
        f->ends++;
        f->result = *what->result;
    }
    answer_with(f, done, request, f->output_status);
}

static inline void set_up(struct fixture *f)
{
    int ends[2];

    memset(f, 0, sizeof *f);
    test_sockets(ends);
    f->keeper = ends[1];
    f->guest = -1;
    assert_int_equal(uv_loop_init(&f->loop), 0);
    assert_int_equal(uv_idle_init(&f->loop, &f->idle), 0);
    f->idle.data = f;
    f->recorder = (struct recorder){.context = f,
                                    .sandbox = record_a_sandbox,
                                    .exec = record_an_exec,
                                    .output = record_output,
                                    .has_room = has_room,
                                    .end = record_end,
                                    .spool = make_spool,
                                    .spool_write = write_spool,
                                    .spool_end = end_spool};
    struct engine_options options = {.loop = &f->loop,
                                     .keeper_fd = ends[0],
                                     .start = 3,
                                     .recorder = &f->recorder,
                                     .sandboxes_max = MANY,
                                     .execs_max = 10,
                                     .result_keep_ms = 1000,
                                     .result_bytes_max = 1 << 20};
    assert_int_equal(engine_new(&options, &f->engine, &f->err), 0);
}

static inline void note_closed(void *data)
{
    ((struct fixture *)data)->is_closed = true;
}

static inline void tear_down(struct fixture *f)
{
    engine_close(f->engine, note_closed, f);
    for (int i = 0; i < 100 && !f->is_closed; i++)
        (void)uv_run(&f->loop, UV_RUN_NOWAIT);
    assert_true(f->is_closed);
    uv_close((uv_handle_t *)&f->idle, NULL);
    (void)uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    close_fd(&f->keeper);
    close_fd(&f->guest);
}

static inline void turn(struct fixture *f)
{
    for (int i = 0; i < 10; i++)
        (void)uv_run(&f->loop, UV_RUN_NOWAIT);
}

/* Until what waits for room was given again. */
static inline void pass(struct fixture *f)
{
    uint64_t end = uv_hrtime() + UINT64_C(50000000);

    while (uv_hrtime() < end) {
        turn(f);
        uv_sleep(1);
    }
}

/* As the keeper or init: what the engine has said to us. */
static inline bool hears(struct fixture *f, int fd, enum wire_type type)
{
    turn(f);
    return link_receive(fd, WIRE_BY_CLIENT, WIRE_IN_RUNNING, f->frame, &f->message, NULL, NULL) == 1 &&
           f->message.type == type;
}

static inline bool is_silent(struct fixture *f, int fd)
{
    turn(f);
    return link_receive(fd, WIRE_BY_CLIENT, WIRE_IN_RUNNING, f->frame, &f->message, NULL, NULL) == -EAGAIN;
}

static inline void say(struct fixture *f, int fd, const struct wire_message *message)
{
    assert_int_equal(link_send(fd, message, NULL, 0), 0);
    turn(f);
}

static inline void note_done(void *data, struct sandbox *sandbox, const struct error *err)
{
    struct fixture *f = data;

    (void)sandbox;
    f->is_done = true;
    f->err = err != NULL ? *err : (struct error){0};
}

static inline struct sandbox *ask(struct fixture *f)
{
    struct sandbox_settings settings = {.class = {.root_fd = -1, .disk_bytes = 1 << 20},
                                        .limits = {.memory_bytes = 1 << 24, .processes = 8},
                                        .owner = "alice"};
    struct sandbox *sandbox = NULL;

    f->is_done = false;
    assert_int_equal(sandbox_create(f->engine, &settings, note_done, f, &sandbox, &f->err), 0);
    return sandbox;
}

/* CREATED, with a guest link whose other end is ours. */
static inline void create(struct fixture *f)
{
    struct wire_message created = {.type = WIRE_CREATED};
    int ends[2];

    assert_true(hears(f, f->keeper, WIRE_CREATE));
    created.created.sandbox = f->message.create.sandbox;
    test_sockets(ends);
    f->guest = ends[1];
    assert_int_equal(link_send(f->keeper, &created, &ends[0], 1), 0);
    (void)close(ends[0]);
    turn(f);
}

static inline struct sandbox *make(struct fixture *f)
{
    struct wire_message hello = {.type = WIRE_HELLO, .hello.channels_max = 256};
    struct sandbox *sandbox = ask(f);

    create(f);
    assert_false(f->is_done);
    say(f, f->guest, &hello);
    assert_true(f->is_done && f->err.code == ERROR_NONE && sandbox->state == SANDBOX_READY);
    return sandbox;
}

static inline uint64_t start(struct fixture *f, struct sandbox *sandbox)
{
    struct exec_settings settings = {.shell = "x"};
    struct exec *exec = NULL;

    assert_int_equal(exec_start(sandbox, &settings, NULL, NULL, &exec, &f->err), 0);
    assert_true(hears(f, f->guest, WIRE_EXEC));
    return f->message.exec.channel;
}
