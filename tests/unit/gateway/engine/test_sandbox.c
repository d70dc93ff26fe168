/*
 * The engine between a keeper and an init that are both us: what they say in an order, and with a malice, that real
 * ones rarely or never have.
 */
#include "fixture.h"

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
