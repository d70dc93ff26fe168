/* When output goes to a spool, and how it comes back from there. */
#include "fixture.h"

enum { FRAME = 60000, FRAMES = 30 };

struct stream {
    struct fixture f;
    struct exec *exec;
    uint64_t channel;
    uint64_t sent;
    uint64_t acked;
};

static void open_stream(struct stream *stream, enum exec_mode mode, uint64_t cap)
{
    struct exec_settings settings = {.shell = "x", .mode = mode, .stdout_cap = cap};

    memset(stream, 0, sizeof *stream);
    set_up(&stream->f);
    stream->f.has_spools = true;
    struct sandbox *sandbox = make(&stream->f);
    assert_int_equal(exec_start(sandbox, &settings, NULL, NULL, &stream->exec, &stream->f.err), 0);
    assert_true(hears(&stream->f, stream->f.guest, WIRE_EXEC));
    stream->channel = stream->f.message.exec.channel;
}

/* Nothing is acknowledged that was not recorded one way or the other. */
static void hear_ack(struct stream *stream)
{
    const struct fixture *f = &stream->f;

    stream->acked = f->message.ack.stdout_offset;
    assert_true(stream->acked <= f->stored_next || stream->acked <= f->spooled_well);
}

/* As init would: no more than a window before it is acknowledged. */
static void print(struct stream *stream, size_t frames)
{
    static const uint8_t data[FRAME];

    for (size_t i = 0; i < frames; i++) {
        struct wire_message output = {.type = WIRE_STDOUT,
                                      .stdout_data = {stream->channel, stream->sent, {data, FRAME}}};
        say(&stream->f, stream->f.guest, &output);
        stream->sent += FRAME;
        while (hears(&stream->f, stream->f.guest, WIRE_ACK))
            hear_ack(stream);
        assert_true(stream->acked <= stream->sent && stream->sent - stream->acked <= WIRE_WINDOW - FRAME);
    }
}

static void end_stream(struct stream *stream)
{
    struct wire_message end = {
        .type = WIRE_EXIT,
        .exit = {.channel = stream->channel, .stdout_offset = stream->sent, .stdout_total = stream->sent}};

    say(&stream->f, stream->f.guest, &end);
    turn(&stream->f);
    assert_int_equal(stream->f.ends, 1);
    assert_int_equal(stream->f.stored_next, stream->sent);
}

TEST(a_flood_goes_to_the_spool)
{
    struct stream stream;

    open_stream(&stream, EXEC_STREAM, 0);
    print(&stream, 4);
    assert_int_equal(stream.f.stored_next, stream.sent);
    assert_int_equal(stream.f.spools_made, 0);
    print(&stream, FRAMES);
    uint64_t stored = stream.f.stored_next;
    assert_true(stored <= 5 * FRAME);
    assert_int_equal(stream.f.spools, 1);
    assert_int_equal(stream.f.spooled_next, stream.sent);
    assert_int_equal(stream.f.spooled_bytes, stream.sent - stored);
    assert_int_equal(stream.exec->recorded, stream.sent);
    end_stream(&stream);
    assert_int_equal(stream.f.gaps, 0);
    assert_int_equal(stream.f.spools, 0);
    assert_int_equal(stream.f.spools_removed, 1);
    tear_down(&stream.f);
}

/* The database is given what the ring still has. */
TEST(what_a_flood_has_overwritten_is_a_gap)
{
    struct stream stream;

    open_stream(&stream, EXEC_STREAM, 0);
    print(&stream, 100);
    end_stream(&stream);
    assert_int_equal(stream.f.gaps, 1);
    assert_int_equal(stream.f.stored_first, stream.sent - EXEC_STREAM_CAP_MIN);
    assert_int_equal(stream.f.spools_removed, 1);
    assert_true(stream.f.result.truncated);
    tear_down(&stream.f);
}

TEST(when_it_has_calmed_down_all_of_it_is_recorded)
{
    struct stream stream;

    open_stream(&stream, EXEC_STREAM, 0);
    print(&stream, FRAMES);
    exec_check_pace(stream.exec); /* it was fast until now */
    turn(&stream.f);
    assert_int_equal(stream.f.spools, 1);
    print(&stream, 1);
    exec_check_pace(stream.exec);
    turn(&stream.f);
    assert_int_equal(stream.f.stored_next, stream.sent);
    assert_int_equal(stream.f.spools_removed, 1);
    assert_false(stream.exec->is_spooling);
    print(&stream, 1);
    assert_int_equal(stream.f.stored_next, stream.sent);
    assert_int_equal(stream.f.spools_made, 1);
    print(&stream, FRAMES);
    assert_int_equal(stream.f.spools_made, 2);
    end_stream(&stream);
    assert_int_equal(stream.f.spools, 0);
    tear_down(&stream.f);
}

TEST(without_a_spool_it_is_recorded_all_the_same)
{
    struct stream stream;

    open_stream(&stream, EXEC_STREAM, 0);
    stream.f.has_spools = false;
    print(&stream, FRAMES);
    assert_int_equal(stream.f.stored_next, stream.sent);
    end_stream(&stream);
    tear_down(&stream.f);

    open_stream(&stream, EXEC_STREAM, 0);
    stream.f.spool_status = -ENOSPC;
    print(&stream, FRAMES);
    assert_int_equal(stream.f.stored_next, stream.sent);
    assert_int_equal(stream.f.gaps, 0);
    assert_int_equal(stream.f.spools, 0);
    assert_int_equal(stream.f.spools_made, 1);
    assert_false(stream.exec->is_unrecorded);
    end_stream(&stream);
    tear_down(&stream.f);
}

/* More than is recorded in one go, and in a spool that broke on the way. */
TEST(a_large_rest_is_recorded_before_the_end)
{
    struct stream stream;

    open_stream(&stream, EXEC_STREAM, 8 << 20);
    print(&stream, 100);
    stream.f.spool_status = -EIO;
    end_stream(&stream);
    assert_int_equal(stream.f.gaps, 0);
    assert_int_equal(stream.f.spools_removed, 1);
    tear_down(&stream.f);
}

/* It breaks when the database is far behind: what only the spool was to have is not acknowledged before that. */
TEST(a_spool_that_breaks_late)
{
    struct stream stream;

    open_stream(&stream, EXEC_STREAM, 32 << 20);
    print(&stream, 400);
    stream.f.spool_status = -EIO;
    print(&stream, 1);
    turn(&stream.f);
    turn(&stream.f);
    while (hears(&stream.f, stream.f.guest, WIRE_ACK))
        hear_ack(&stream);
    assert_int_equal(stream.acked, stream.sent);
    assert_int_equal(stream.f.gaps, 0);
    end_stream(&stream);
    tear_down(&stream.f);
}

TEST(what_is_collected_is_not_spooled)
{
    struct stream stream;

    open_stream(&stream, EXEC_COLLECT, 8 << 20);
    print(&stream, FRAMES);
    assert_int_equal(stream.f.spools_made, 0);
    end_stream(&stream);
    tear_down(&stream.f);
}

/* It stays for whoever starts next. */
TEST(a_spool_survives_an_engine_that_closes)
{
    struct stream stream;

    open_stream(&stream, EXEC_STREAM, 0);
    print(&stream, FRAMES);
    tear_down(&stream.f);
    assert_int_equal(stream.f.spools_made, 1);
    assert_int_equal(stream.f.spools, 0);
    assert_int_equal(stream.f.spools_removed, 0);
}

static void hear_acks(struct stream *stream)
{
    while (hears(&stream->f, stream->f.guest, WIRE_ACK))
        stream->acked = stream->f.message.ack.stdout_offset;
}

/* Too much waits: init keeps what it said, and it is recorded without a gap when there is room. */
static void refuse_for_a_while(int status, bool is_full)
{
    struct stream stream;

    open_stream(&stream, EXEC_STREAM, 0);
    stream.f.output_status = status;
    stream.f.is_full = is_full;
    print(&stream, 3);
    pass(&stream.f);
    assert_int_equal(stream.acked, 0);
    assert_int_equal(stream.f.stored_next, 0);
    assert_int_equal(stream.f.outputs > 1, !is_full);
    assert_false(stream.exec->is_unrecorded || stream.exec->is_killed);
    stream.f.output_status = 0;
    stream.f.is_full = false;
    pass(&stream.f);
    hear_acks(&stream);
    assert_int_equal(stream.acked, stream.sent);
    assert_int_equal(stream.f.stored_next, stream.sent);
    print(&stream, 2);
    end_stream(&stream);
    assert_int_equal(stream.f.gaps, 0);
    tear_down(&stream.f);
}

TEST(what_is_refused_is_given_again)
{
    refuse_for_a_while(-ENOBUFS, false);
}

TEST(what_there_is_no_room_for_is_not_given)
{
    refuse_for_a_while(0, true);
}

TEST(an_end_that_is_refused_is_given_again)
{
    struct stream stream;

    open_stream(&stream, EXEC_STREAM, 0);
    print(&stream, FRAMES);
    struct wire_message end = {
        .type = WIRE_EXIT,
        .exit = {.channel = stream.channel, .stdout_offset = stream.sent, .stdout_total = stream.sent}};
    stream.f.output_status = -ENOBUFS;
    say(&stream.f, stream.f.guest, &end);
    pass(&stream.f);
    assert_true(stream.exec->state == EXEC_ENDING && stream.f.outputs + stream.f.end_tries > 1);
    assert_int_equal(stream.f.spools, 1);
    stream.f.output_status = 0;
    pass(&stream.f);
    assert_int_equal(stream.f.ends, 1);
    assert_int_equal(stream.f.stored_next, stream.sent);
    assert_int_equal(stream.f.gaps, 0);
    assert_int_equal(stream.f.spools_removed, 1);
    tear_down(&stream.f);
}

/* An engine that closes leaves it to the next one. */
TEST(what_waits_when_the_engine_closes)
{
    struct stream stream;

    open_stream(&stream, EXEC_STREAM, 0);
    stream.f.is_full = true;
    print(&stream, 1);
    tear_down(&stream.f);
    assert_int_equal(stream.f.outputs, 0);
}

/* It is killed, and init gets rid of whatever it still has to say, so that it can tell the end. */
TEST(what_cannot_be_recorded_is_killed_and_ends)
{
    static const uint8_t data[FRAME];
    struct stream stream;

    open_stream(&stream, EXEC_STREAM, 0);
    print(&stream, FRAMES);
    exec_check_pace(stream.exec);
    stream.f.output_status = -EIO;
    stream.f.spool_status = -EIO;
    for (size_t i = 0; i < FRAMES; i++) {
        struct wire_message output = {.type = WIRE_STDOUT, .stdout_data = {stream.channel, stream.sent, {data, FRAME}}};
        say(&stream.f, stream.f.guest, &output);
        stream.sent += FRAME;
        turn(&stream.f);
        while (link_receive(stream.f.guest, WIRE_BY_CLIENT, WIRE_IN_RUNNING, stream.f.frame, &stream.f.message, NULL,
                            NULL) == 1)
            stream.acked = stream.f.message.type == WIRE_ACK ? stream.f.message.ack.stdout_offset : stream.acked;
        assert_true(stream.sent - stream.acked <= WIRE_WINDOW - FRAME);
    }
    assert_true(stream.exec->is_unrecorded && stream.exec->is_killed);
    assert_int_equal(stream.f.spools_removed, 1);
    stream.f.output_status = 0;
    uint64_t stored = stream.f.stored_next;
    struct wire_message end = {
        .type = WIRE_EXIT,
        .exit = {.channel = stream.channel, .stdout_offset = stream.sent, .stdout_total = stream.sent}};
    say(&stream.f, stream.f.guest, &end);
    assert_int_equal(stream.f.ends, 1);
    assert_int_equal(stream.f.stored_next, stored);
    tear_down(&stream.f);
}

/* A spool is not ended while it is written to. */
TEST(the_end_waits_for_what_is_under_way)
{
    struct stream stream;

    open_stream(&stream, EXEC_STREAM, 0);
    print(&stream, FRAMES);
    stream.f.is_stuck = true;
    print(&stream, 1);
    struct wire_message end = {
        .type = WIRE_EXIT,
        .exit = {.channel = stream.channel, .stdout_offset = stream.sent, .stdout_total = stream.sent}};
    say(&stream.f, stream.f.guest, &end);
    assert_int_equal(stream.f.waiting_count, 1);
    assert_int_equal(stream.f.spools, 1);
    stream.f.is_stuck = false;
    turn(&stream.f);
    assert_int_equal(stream.f.ends, 1);
    assert_int_equal(stream.f.stored_next, stream.sent);
    assert_int_equal(stream.f.spools_removed, 1);
    tear_down(&stream.f);
}

static int start_with(struct fixture *f, struct sandbox *sandbox, enum exec_mode mode, uint64_t cap, struct exec **exec)
{
    struct exec_settings settings = {.shell = "x", .mode = mode, .stdout_cap = cap};
    int r = exec_start(sandbox, &settings, NULL, NULL, exec, &f->err);

    if (r == 0)
        assert_true(hears(f, f->guest, WIRE_EXEC));
    return r;
}

static void end_of(struct fixture *f, const struct exec *exec)
{
    struct wire_message end = {.type = WIRE_EXIT, .exit = {.channel = exec->channel.id}};

    say(f, f->guest, &end);
    assert_true(hears(f, f->guest, WIRE_RELEASE));
}

static void no_news(void *data, struct exec_follower *follower)
{
    (void)data;
    (void)follower;
}

/* Memory for output is shared out; what an exec was given is what is recorded and what init is told. */
TEST(memory_for_output_has_an_end)
{
    struct exec *execs[3];
    struct exec *another;
    struct exec_follower *follower;
    struct fixture f;

    set_up(&f);
    budget_init(&f.engine->budget, 9 << 20); /* the least for three, and 3 MiB */
    struct sandbox *sandbox = make(&f);
    assert_int_equal(start_with(&f, sandbox, EXEC_STREAM, 64 << 20, &execs[0]), 0);
    assert_int_equal(execs[0]->ring.cap, EXEC_STREAM_CAP_MIN + (3 << 18));
    assert_int_equal(f.recorded_caps[0], execs[0]->ring.cap);
    assert_int_equal(start_with(&f, sandbox, EXEC_COLLECT, 63 << 20, &execs[1]), 0);
    assert_int_equal(f.recorded_caps[0] + f.recorded_caps[1], execs[1]->ring.cap);
    assert_int_equal(f.recorded_caps[0], f.message.exec.stdout_cap);
    assert_int_equal(f.recorded_caps[1], f.message.exec.stderr_cap);
    assert_true(f.recorded_caps[1] > 0 && f.recorded_caps[1] < 1 << 20);
    assert_int_equal(start_with(&f, sandbox, EXEC_STREAM, 0, &execs[2]), 0);
    assert_int_equal(start_with(&f, sandbox, EXEC_STREAM, 0, &another), -EAGAIN);
    assert_int_equal(f.err.code, ERROR_LIMIT);

    assert_int_equal(exec_follow(execs[2], &(struct exec_follow_options){0}, no_news, NULL, &follower, &f.err), 0);
    end_of(&f, execs[2]);
    assert_int_equal(start_with(&f, sandbox, EXEC_STREAM, 0, &another), -EAGAIN);
    exec_follower_free(follower);
    assert_int_equal(start_with(&f, sandbox, EXEC_STREAM, 0, &another), 0);
    tear_down(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_flood_goes_to_the_spool),
        cmocka_unit_test(what_a_flood_has_overwritten_is_a_gap),
        cmocka_unit_test(when_it_has_calmed_down_all_of_it_is_recorded),
        cmocka_unit_test(without_a_spool_it_is_recorded_all_the_same),
        cmocka_unit_test(a_large_rest_is_recorded_before_the_end),
        cmocka_unit_test(a_spool_that_breaks_late),
        cmocka_unit_test(what_is_collected_is_not_spooled),
        cmocka_unit_test(a_spool_survives_an_engine_that_closes),
        cmocka_unit_test(what_is_refused_is_given_again),
        cmocka_unit_test(what_there_is_no_room_for_is_not_given),
        cmocka_unit_test(an_end_that_is_refused_is_given_again),
        cmocka_unit_test(what_waits_when_the_engine_closes),
        cmocka_unit_test(what_cannot_be_recorded_is_killed_and_ends),
        cmocka_unit_test(the_end_waits_for_what_is_under_way),
        cmocka_unit_test(memory_for_output_has_an_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
