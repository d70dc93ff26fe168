/*
 * The engine between a keeper and an init that are both us: what they say in an order, and with a malice, that real
 * ones rarely or never have.
 */
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
    size_t ends;
    struct exec_result result;
};

static void answer(uv_idle_t *idle)
{
    struct fixture *f = idle->data;
    size_t count = f->waiting_count;

    for (size_t i = 0; i < count; i++)
        f->waiting[i].done(f->waiting[i].request, 0);
    f->waiting_count -= count;
    memmove(f->waiting, f->waiting + count, f->waiting_count * sizeof *f->waiting);
    if (f->waiting_count == 0)
        (void)uv_idle_stop(idle);
}

static void wait_for_answer(struct fixture *f, recorder_done done, void *request)
{
    if (done == NULL)
        return;
    assert_true(f->waiting_count < ANSWERS_MAX);
    f->waiting[f->waiting_count].done = done;
    f->waiting[f->waiting_count++].request = request;
    (void)uv_idle_start(&f->idle, answer);
}

static void record_a_sandbox(void *context, const struct recorder_sandbox *what, recorder_done done, void *request)
{
    struct fixture *f = context;

    f->recorded_state = what->state;
    f->recorded_reason = what->reason;
    wait_for_answer(f, done, request);
}

static void record_an_exec(void *context, const struct recorder_exec *what, recorder_done done, void *request)
{
    (void)what;
    wait_for_answer(context, done, request);
}

static void record_output(void *context, const struct recorder_output *what, recorder_done done, void *request)
{
    (void)what;
    wait_for_answer(context, done, request);
}

static void record_end(void *context, const struct recorder_end *what, recorder_done done, void *request)
{
    struct fixture *f = context;

    f->ends++;
    f->result = *what->result;
    wait_for_answer(f, done, request);
}

static void set_up(struct fixture *f)
{
    int ends[2];

    memset(f, 0, sizeof *f);
    test_sockets(ends);
    f->keeper = ends[1];
    f->guest = -1;
    assert_int_equal(uv_loop_init(&f->loop), 0);
    assert_int_equal(uv_idle_init(&f->loop, &f->idle), 0);
    f->idle.data = f;
    f->recorder = (struct recorder){f, record_a_sandbox, record_an_exec, record_output, record_end};
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

static void note_closed(void *data)
{
    ((struct fixture *)data)->is_closed = true;
}

static void tear_down(struct fixture *f)
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

static void turn(struct fixture *f)
{
    for (int i = 0; i < 10; i++)
        (void)uv_run(&f->loop, UV_RUN_NOWAIT);
}

/* As the keeper or init: what the engine has said to us. */
static bool hears(struct fixture *f, int fd, enum wire_type type)
{
    turn(f);
    return link_receive(fd, WIRE_BY_CLIENT, WIRE_IN_RUNNING, f->frame, &f->message, NULL, NULL) == 1 &&
           f->message.type == type;
}

static bool is_silent(struct fixture *f, int fd)
{
    turn(f);
    return link_receive(fd, WIRE_BY_CLIENT, WIRE_IN_RUNNING, f->frame, &f->message, NULL, NULL) == -EAGAIN;
}

static void say(struct fixture *f, int fd, const struct wire_message *message)
{
    assert_int_equal(link_send(fd, message, NULL, 0), 0);
    turn(f);
}

static void note_done(void *data, struct sandbox *sandbox, const struct error *err)
{
    struct fixture *f = data;

    (void)sandbox;
    f->is_done = true;
    f->err = err != NULL ? *err : (struct error){0};
}

static struct sandbox *ask(struct fixture *f)
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
static void create(struct fixture *f)
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

static struct sandbox *make(struct fixture *f)
{
    struct wire_message hello = {.type = WIRE_HELLO, .hello.channels_max = 256};
    struct sandbox *sandbox = ask(f);

    create(f);
    assert_false(f->is_done);
    say(f, f->guest, &hello);
    assert_true(f->is_done && f->err.code == ERROR_NONE && sandbox->state == SANDBOX_READY);
    return sandbox;
}

static uint64_t start(struct fixture *f, struct sandbox *sandbox)
{
    struct exec_settings settings = {.shell = "x"};
    struct exec *exec = NULL;

    assert_int_equal(exec_start(sandbox, &settings, NULL, NULL, &exec, &f->err), 0);
    assert_true(hears(f, f->guest, WIRE_EXEC));
    return f->message.exec.channel;
}

TEST(test_hostile_init_is_ended)
{
    struct fixture f;

    set_up(&f);
    struct sandbox *sandbox = make(&f);
    uint64_t channel = start(&f, sandbox);
    struct wire_message lie = {.type = WIRE_STDOUT, .stdout_data = {channel, 7, {(const uint8_t *)"x", 1}}};
    say(&f, f.guest, &lie);
    assert_int_equal(f.ends, 1);
    assert_int_equal(f.result.end, EXEC_LOST);
    assert_int_equal(f.result.value, SANDBOX_CRASHED);
    assert_int_equal(f.recorded_reason, SANDBOX_CRASHED);
    assert_int_equal(f.recorded_state, SANDBOX_STOPPING);
    assert_null(sandbox_after(f.engine, 0, NULL));
    assert_true(hears(&f, f.keeper, WIRE_DESTROY));
    struct engine_figures figures;
    engine_figures(f.engine, &figures);
    assert_int_equal(figures.hostile, 1);
    struct wire_message gone = {.type = WIRE_GONE, .gone.sandbox = f.message.destroy.sandbox};
    say(&f, f.keeper, &gone);
    assert_int_equal(f.recorded_state, SANDBOX_GONE);
    assert_int_equal(f.engine->numbers.count, 0);
    tear_down(&f);
}

TEST(test_not_a_frame)
{
    struct fixture f;

    set_up(&f);
    (void)make(&f);
    assert_int_equal(fd_send(f.guest, "nonsense", 8, NULL, 0), 0);
    assert_true(hears(&f, f.keeper, WIRE_DESTROY));
    tear_down(&f);
}

/* Descriptors of a guest's are not taken: a packet with one is not one of ours. */
TEST(test_descriptor_from_init)
{
    struct fixture f;
    struct wire_message taken = {.type = WIRE_TAKEN};
    size_t before;

    set_up(&f);
    (void)make(&f);
    before = test_open_fds();
    assert_int_equal(link_send(f.guest, &taken, &f.keeper, 1), 0);
    assert_true(hears(&f, f.keeper, WIRE_DESTROY));
    assert_int_equal(test_open_fds(), before);
    tear_down(&f);
}

/* What it said before it ended comes first; why it ended is the keeper's to say. */
TEST(test_end_by_itself)
{
    struct fixture f;

    set_up(&f);
    struct sandbox *sandbox = make(&f);
    uint64_t number = sandbox->number;
    uint64_t channel = start(&f, sandbox);
    uint64_t other = start(&f, sandbox);
    struct wire_message last = {.type = WIRE_EXIT, .exit = {.channel = channel, .value = 4}};
    assert_int_equal(link_send(f.guest, &last, NULL, 0), 0);
    close_fd(&f.guest);
    turn(&f);
    assert_int_equal(f.ends, 1);
    assert_int_equal(f.result.value, 4);
    assert_true(is_silent(&f, f.keeper)); /* or the keeper could not count its kills any more */
    struct wire_message gone = {.type = WIRE_GONE, .gone = {.sandbox = number, .oom_kills = 1}};
    say(&f, f.keeper, &gone);
    assert_int_equal(f.ends, 2);
    assert_int_equal(f.result.end, EXEC_LOST);
    assert_int_equal(f.result.value, SANDBOX_OOM);
    assert_int_equal(f.recorded_reason, SANDBOX_OOM);
    assert_true(other != channel);
    tear_down(&f);
}

TEST(test_refused)
{
    struct fixture f;
    const struct {
        uint32_t step;
        uint32_t error;
        enum error_code code;
    } rows[] = {
        {STEP_REQUEST, EINVAL, ERROR_INVALID}, {STEP_REQUEST, EAGAIN, ERROR_LIMIT}, {STEP_CLONE, EPERM, ERROR_SYSTEM}};

    set_up(&f);
    for (size_t i = 0; i < COUNT(rows); i++) {
        (void)ask(&f);
        assert_true(hears(&f, f.keeper, WIRE_CREATE));
        struct wire_message refused = {.type = WIRE_REFUSED,
                                       .refused = {.sandbox = f.message.create.sandbox,
                                                   .step = rows[i].step,
                                                   .error = rows[i].error,
                                                   .detail = wire_str("because")}};
        say(&f, f.keeper, &refused);
        assert_true(f.is_done);
        assert_int_equal(f.err.code, rows[i].code);
        assert_non_null(strstr(f.err.message, "because"));
        assert_int_equal(f.engine->numbers.count, 0);
        assert_int_equal(f.engine->live, 0);
    }
    tear_down(&f);
}

TEST(test_setup_fails)
{
    struct fixture f;
    struct wire_message setup = {.type = WIRE_SETUP,
                                 .setup = {.step = STEP_PIVOT, .error = EPERM, .detail = wire_str("pivot")}};

    set_up(&f);
    (void)ask(&f);
    create(&f);
    say(&f, f.guest, &setup);
    assert_true(f.is_done && f.err.err == EPERM && strstr(f.err.message, "pivot") != NULL);
    assert_true(hears(&f, f.keeper, WIRE_DESTROY));
    tear_down(&f);
}

/* Destroyed before the keeper has answered: it is told to end it as soon as there is something to end. */
TEST(test_destroyed_while_made)
{
    struct fixture f;

    set_up(&f);
    struct sandbox *sandbox = ask(&f);
    sandbox_destroy(sandbox, SANDBOX_DESTROYED, NULL, NULL);
    assert_true(f.is_done && f.err.code != ERROR_NONE);
    create(&f);
    assert_true(hears(&f, f.keeper, WIRE_DESTROY));
    struct wire_message refused = {.type = WIRE_REFUSED,
                                   .refused = {.sandbox = f.message.destroy.sandbox, .error = ENOENT}};
    say(&f, f.keeper, &refused);
    assert_int_equal(f.engine->numbers.count, 0);
    tear_down(&f);
}

/* The keeper ends who does not read its answers: no more is asked than fits. */
TEST(test_back_pressure)
{
    struct fixture f;
    size_t asked = 0;

    set_up(&f);
    for (int i = 0; i < MANY; i++)
        (void)ask(&f);
    while (hears(&f, f.keeper, WIRE_CREATE))
        asked++;
    assert_int_equal(asked, KEEPER_LINK_AT_ONCE);
    struct wire_message refused = {.type = WIRE_REFUSED,
                                   .refused = {.sandbox = (uint64_t)3 << 32 | 1, .error = EIO, .step = STEP_CLONE}};
    say(&f, f.keeper, &refused);
    assert_true(hears(&f, f.keeper, WIRE_CREATE));
    assert_true(is_silent(&f, f.keeper));
    tear_down(&f);
}

/* Output is acknowledged when it is recorded, not before, and RELEASE comes after the record of the end. */
TEST(test_acknowledged_when_recorded)
{
    static const uint8_t data[WIRE_DATA_MAX];
    struct fixture f;

    set_up(&f);
    struct sandbox *sandbox = make(&f);
    uint64_t channel = start(&f, sandbox);
    (void)uv_idle_stop(&f.idle);
    struct wire_message output = {.type = WIRE_STDOUT, .stdout_data = {channel, 0, {data, WIRE_DATA_MAX}}};
    assert_int_equal(link_send(f.guest, &output, NULL, 0), 0);
    (void)uv_run(&f.loop, UV_RUN_NOWAIT);
    assert_int_equal(f.waiting_count, 1);
    assert_int_equal(link_receive(f.guest, WIRE_BY_CLIENT, WIRE_IN_RUNNING, f.frame, &f.message, NULL, NULL), -EAGAIN);
    assert_true(hears(&f, f.guest, WIRE_ACK));
    assert_int_equal(f.message.ack.stdout_offset, WIRE_DATA_MAX);
    struct wire_message end = {
        .type = WIRE_EXIT, .exit = {.channel = channel, .stdout_offset = WIRE_DATA_MAX, .stdout_total = WIRE_DATA_MAX}};
    assert_int_equal(link_send(f.guest, &end, NULL, 0), 0);
    (void)uv_run(&f.loop, UV_RUN_NOWAIT);
    assert_int_equal(f.ends, 1);
    assert_int_equal(link_receive(f.guest, WIRE_BY_CLIENT, WIRE_IN_RUNNING, f.frame, &f.message, NULL, NULL), -EAGAIN);
    assert_true(hears(&f, f.guest, WIRE_RELEASE));
    tear_down(&f);
}

static void end_exec(struct fixture *f, uint64_t channel)
{
    struct wire_message end = {.type = WIRE_EXIT, .exit.channel = channel};

    say(f, f->guest, &end);
    assert_true(hears(f, f->guest, WIRE_RELEASE));
}

/* A result is kept for its time, and no more of them than there is memory for. */
TEST(test_results_expire)
{
    struct fixture f;
    struct engine_figures figures;

    set_up(&f);
    struct sandbox *sandbox = make(&f);
    end_exec(&f, start(&f, sandbox));
    engine_figures(f.engine, &figures);
    assert_true(figures.execs_kept == 1 && figures.execs == 0 && figures.result_bytes > 0);
    f.engine->options.result_bytes_max = figures.result_bytes;
    end_exec(&f, start(&f, sandbox));
    assert_ptr_equal(f.engine->exec_oldest, f.engine->exec_newest);
    uint64_t until = uv_now(&f.loop) + 2500; /* its second, and a tick */
    while (f.engine->exec_oldest != NULL && uv_now(&f.loop) < until)
        (void)uv_run(&f.loop, UV_RUN_ONCE);
    engine_figures(f.engine, &figures);
    assert_true(figures.execs_kept == 0 && figures.result_bytes == 0 && figures.executed == 2);
    tear_down(&f);
}

static void note_drained(void *data)
{
    ((struct fixture *)data)->is_done = true;
}

TEST(test_nothing_to_drain)
{
    struct fixture f;

    set_up(&f);
    engine_drain(f.engine, note_drained, &f);
    assert_false(f.is_done);
    turn(&f);
    assert_true(f.is_done);
    tear_down(&f);
}

/* A limit of callers' making, told apart from others. */
TEST(test_too_many_execs)
{
    struct fixture f;
    struct exec_settings settings = {.shell = "x"};
    struct exec *exec = NULL;

    set_up(&f);
    struct sandbox *sandbox = make(&f);
    for (int i = 0; i < 10; i++)
        (void)start(&f, sandbox);
    assert_true(exec_start(sandbox, &settings, NULL, NULL, &exec, &f.err) < 0);
    assert_int_equal(f.err.code, ERROR_LIMIT);
    tear_down(&f);
}

TEST(test_stale_channels_are_released)
{
    struct fixture f;
    struct wire_message old = {.type = WIRE_EXIT, .exit.channel = (uint64_t)2 << 32 | 9};

    set_up(&f);
    (void)make(&f);
    say(&f, f.guest, &old);
    assert_true(hears(&f, f.guest, WIRE_RELEASE));
    assert_int_equal(f.message.release.channel, (uint64_t)2 << 32 | 9);
    tear_down(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hostile_init_is_ended),
        cmocka_unit_test(test_not_a_frame),
        cmocka_unit_test(test_descriptor_from_init),
        cmocka_unit_test(test_end_by_itself),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_setup_fails),
        cmocka_unit_test(test_destroyed_while_made),
        cmocka_unit_test(test_back_pressure),
        cmocka_unit_test(test_acknowledged_when_recorded),
        cmocka_unit_test(test_results_expire),
        cmocka_unit_test(test_nothing_to_drain),
        cmocka_unit_test(test_too_many_execs),
        cmocka_unit_test(test_stale_channels_are_released),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
