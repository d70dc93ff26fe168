/*
 * The engine's side of the guest link: what an init may say, and what one says that an agent has taken over.
 */
#include "gateway/engine/guest.h"
#include "test.h"

enum { START = 5 };

static const uint8_t bytes[WIRE_DATA_MAX] = "output";

struct fixture {
    struct guest guest;
    struct guest_channel exec;     /* channel 1, collects at most 100 bytes of each stream */
    struct guest_channel stream;   /* channel 2, without a cap, with input */
    struct guest_channel terminal; /* channel 3 */
    struct guest_channel file;
    struct guest_event event;
};

static uint64_t id(uint32_t count)
{
    return guest_channel_id(START, false, count);
}

static void set_up(struct fixture *f)
{
    *f = (struct fixture){.exec = {.id = id(1), .has_errors = true, .caps = {100, 100}, .stdin_closed = true},
                          .stream = {.id = id(2), .has_errors = true, .sent = 50000},
                          .terminal = {.id = id(3)},
                          .file = {.id = guest_channel_id(START, true, 1), .is_file = true}};
    guest_init(&f->guest, START);
    f->guest.state = WIRE_IN_RUNNING;
    guest_open(&f->guest, &f->exec);
    guest_open(&f->guest, &f->stream);
    guest_open(&f->guest, &f->terminal);
    guest_open(&f->guest, &f->file);
}

#define OUT(number, at, size)                                                                                          \
    {                                                                                                                  \
        .type = WIRE_STDOUT, .stdout_data = {.channel = (number), .offset = (at), .data = {bytes, (size)} }            \
    }
#define ERR(number, at, size)                                                                                          \
    {                                                                                                                  \
        .type = WIRE_STDERR, .stderr_data = {.channel = (number), .offset = (at), .data = {bytes, (size)} }            \
    }
#define EXIT(number, ...)                                                                                              \
    {                                                                                                                  \
        .type = WIRE_EXIT, .exit = {.channel = (number), __VA_ARGS__ }                                                 \
    }
#define TAKEN(number, at, is_closed)                                                                                   \
    {                                                                                                                  \
        .type = WIRE_TAKEN, .taken = {.channel = (number), .offset = (at), .closed = (is_closed) }                     \
    }
#define ID(number) (UINT64_C(5) << 32 | (number))
#define FILE_ID (UINT64_C(5) << 32 | UINT64_C(1) << 31 | 1)
#define TAIL(size) .stdout_tail = {bytes, (size)}

static const struct {
    const char *name;
    struct wire_message message;
    int result;
    enum guest_kind kind;
} rows[] = {
    {"output", OUT(ID(1), 0, 6), 0, GUEST_OUTPUT},
    {"errors", ERR(ID(1), 0, 6), 0, GUEST_OUTPUT},
    {"output with a gap", OUT(ID(1), 1, 6), -EBADMSG, 0},
    {"output that says nothing", OUT(ID(1), 0, 0), -EBADMSG, 0},
    {"output over the cap", OUT(ID(1), 0, 101), -EBADMSG, 0},
    {"output up to the cap", OUT(ID(1), 0, 100), 0, GUEST_OUTPUT},
    {"output without a cap", OUT(ID(2), 0, WIRE_DATA_MAX), 0, GUEST_OUTPUT},
    {"errors of a terminal", ERR(ID(3), 0, 6), -EBADMSG, 0},
    {"errors of a file", ERR(FILE_ID, 0, 6), -EBADMSG, 0},
    {"output of a file", OUT(FILE_ID, 0, 6), 0, GUEST_OUTPUT},
    {"a channel nobody opened", OUT(ID(9), 0, 6), -EBADMSG, 0},
    {"a channel of a gateway to come", OUT(UINT64_C(6) << 32 | 1, 0, 6), -EBADMSG, 0},
    {"a channel of an earlier gateway", OUT(UINT64_C(4) << 32 | 1, 0, 6), 0, GUEST_STALE},
    {"the end of an earlier one", EXIT(UINT64_C(4) << 32 | 1, .kind = 0), 0, GUEST_STALE},
    {"input taken", TAKEN(ID(2), 50000, 0), 0, GUEST_TAKEN},
    {"input taken that was not sent", TAKEN(ID(2), 50001, 0), -EBADMSG, 0},
    {"input that is closed and more", TAKEN(ID(2), 0, 2), -EBADMSG, 0},
    {"input opened again", TAKEN(ID(1), 0, 0), -EBADMSG, 0},
    {"exit", EXIT(ID(1), .value = 255, TAIL(6), .stdout_total = 6), 0, GUEST_EXIT},
    {"exit with a code there is not", EXIT(ID(1), .value = 256), -EBADMSG, 0},
    {"a file's exit with an errno", EXIT(FILE_ID, .value = 256), 0, GUEST_EXIT},
    {"exit by a signal", EXIT(ID(1), .kind = WIRE_EXIT_SIGNAL, .value = 9), 0, GUEST_EXIT},
    {"exit by no signal", EXIT(ID(1), .kind = WIRE_EXIT_SIGNAL, .value = 0), -EBADMSG, 0},
    {"exit by signal 65", EXIT(ID(1), .kind = WIRE_EXIT_SIGNAL, .value = 65), -EBADMSG, 0},
    {"not started", EXIT(ID(1), .kind = WIRE_EXIT_NOT_STARTED, .value = ENOENT), 0, GUEST_EXIT},
    {"not started for no reason", EXIT(ID(1), .kind = WIRE_EXIT_NOT_STARTED), -EBADMSG, 0},
    {"not started at an unknown step", EXIT(ID(1), .kind = WIRE_EXIT_NOT_STARTED, .value = 1, .failed = 4), -EBADMSG,
     0},
    {"exit of an unknown kind", EXIT(ID(1), .kind = 3), -EBADMSG, 0},
    {"exit with a gap before its tail", EXIT(ID(1), .stdout_offset = 1, TAIL(6), .stdout_total = 7), -EBADMSG, 0},
    {"exit that counts less than came", EXIT(ID(1), TAIL(6), .stdout_total = 5), -EBADMSG, 0},
    {"exit that counts more than came", EXIT(ID(1), TAIL(6), .stdout_total = 7), -EBADMSG, 0},
    {"exit at the cap, which counts more", EXIT(ID(1), TAIL(100), .stdout_total = 4000), 0, GUEST_EXIT},
    {"exit without a cap, which counts more", EXIT(ID(2), TAIL(100), .stdout_total = 4000), -EBADMSG, 0},
    {"exit of a terminal with errors", EXIT(ID(3), .stderr_tail = {bytes, 1}, .stderr_total = 1), -EBADMSG, 0},
    {"hello again", {.type = WIRE_HELLO, .hello.channels_max = 256}, -EBADMSG, 0},
    {"setup too late", {.type = WIRE_SETUP}, -EBADMSG, 0},
    {"what only a client may", {.type = WIRE_ACK, .ack.channel = ID(1)}, -EBADMSG, 0},
    {"what only the keeper may", {.type = WIRE_OOM}, -EBADMSG, 0},
    {"a record on the link", {.type = WIRE_ENTRY}, -EBADMSG, 0},
};

TEST(test_messages)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct fixture f;
        set_up(&f);
        int r = guest_hear(&f.guest, &rows[i].message, &f.event);
        assert_row(rows[i].name, r == rows[i].result);
        assert_row(rows[i].name, r < 0 || f.event.kind == rows[i].kind);
    }
}

TEST(test_start)
{
    struct wire_message hello = {.type = WIRE_HELLO, .hello = {.channels_max = 1000000, .features = 3}};
    struct wire_message none = {.type = WIRE_HELLO};
    struct wire_message failed = {.type = WIRE_SETUP, .setup = {.error = EIO, .step = 4}};
    struct wire_message times = {.type = WIRE_SETUP};
    struct wire_message absurd = {.type = WIRE_SETUP, .setup.error = 4096};
    struct wire_message early = OUT(ID(1), 0, 6);
    struct guest guest;
    struct guest_event event;

    guest_init(&guest, START);
    assert_int_equal(guest_hear(&guest, &early, &event), -EBADMSG);
    assert_int_equal(guest_hear(&guest, &none, &event), -EBADMSG);
    assert_int_equal(guest_hear(&guest, &absurd, &event), -EBADMSG);
    assert_int_equal(guest_hear(&guest, &times, &event), 0);
    assert_int_equal(event.kind, GUEST_TIMES);
    assert_int_equal(guest_hear(&guest, &failed, &event), 0);
    assert_int_equal(event.kind, GUEST_FAILED);
    assert_int_equal(event.setup->error, EIO);
    assert_int_equal(guest_hear(&guest, &hello, &event), 0);
    assert_int_equal(event.kind, GUEST_HELLO);
    assert_int_equal(guest.channels_max, GUEST_CHANNELS_MAX);
}

/* No more than the window beyond what was acknowledged, in one piece or in many, the last in EXIT. */
TEST(test_window)
{
    struct fixture f;

    set_up(&f);
    for (uint32_t i = 0; i < 2; i++) {
        struct wire_message full = OUT(ID(2), (uint64_t)i * WIRE_DATA_MAX, WIRE_DATA_MAX);
        assert_int_equal(guest_hear(&f.guest, &full, &f.event), 0);
    }
    uint64_t at = 2 * WIRE_DATA_MAX;
    struct wire_message more = OUT(ID(2), at, WIRE_WINDOW - 2 * WIRE_DATA_MAX + 1);
    assert_int_equal(guest_hear(&f.guest, &more, &f.event), -EBADMSG);
    more.stdout_data.data.length--;
    assert_int_equal(guest_hear(&f.guest, &more, &f.event), 0);
    struct wire_message end = EXIT(ID(2), .stdout_offset = WIRE_WINDOW, TAIL(1), .stdout_total = WIRE_WINDOW + 1);
    struct guest_channel before = f.stream;
    assert_int_equal(guest_hear(&f.guest, &end, &f.event), -EBADMSG);
    f.stream = before;
    guest_open(&f.guest, &f.stream);
    f.stream.acked[0] = 1;
    assert_int_equal(guest_hear(&f.guest, &end, &f.event), 0);
}

TEST(test_after_exit)
{
    struct fixture f;
    struct wire_message end = EXIT(ID(1), .value = 0);
    struct wire_message more = OUT(ID(1), 0, 6);

    set_up(&f);
    assert_int_equal(guest_hear(&f.guest, &end, &f.event), 0);
    assert_int_equal(f.guest.channel_count, 3);
    assert_int_equal(guest_hear(&f.guest, &more, &f.event), -EBADMSG);
    assert_int_equal(guest_hear(&f.guest, &end, &f.event), -EBADMSG);
}

TEST(test_stdin_room)
{
    struct fixture f;
    struct wire_message taken = TAKEN(ID(2), 20000, 0);
    struct wire_message back = TAKEN(ID(2), 19999, 0);
    struct wire_message closed = TAKEN(ID(2), 20000, 1);

    set_up(&f);
    assert_int_equal(guest_stdin_room(&f.stream), WIRE_WINDOW - 50000);
    assert_int_equal(guest_hear(&f.guest, &taken, &f.event), 0);
    assert_int_equal(guest_stdin_room(&f.stream), WIRE_WINDOW - 30000);
    assert_int_equal(guest_hear(&f.guest, &back, &f.event), -EBADMSG);
    assert_int_equal(guest_hear(&f.guest, &closed, &f.event), 0);
    assert_int_equal(guest_stdin_room(&f.stream), 0);
}

/* An exec of an earlier gateway's whose record ends at 1000. */
static void resume(struct fixture *f)
{
    set_up(f);
    f->stream.is_resumed = f->stream.is_input_unknown = true;
    f->stream.sent = 0;
    f->stream.received[0] = f->stream.acked[0] = 1000;
}

static void assert_heard(struct fixture *f, const struct wire_message *message, enum guest_kind kind, uint64_t received)
{
    assert_int_equal(guest_hear(&f->guest, message, &f->event), 0);
    assert_int_equal(f->event.kind, kind);
    assert_int_equal(f->stream.received[0], received);
}

TEST(test_what_was_under_way_to_an_earlier_gateway)
{
    struct fixture f;
    struct wire_message gap = OUT(ID(2), 1500, 100);
    struct wire_message next = OUT(ID(2), 1000, 300);
    struct wire_message again = OUT(ID(2), 1000, 300);
    struct wire_message overlap = OUT(ID(2), 1200, 400);

    resume(&f);
    assert_heard(&f, &gap, GUEST_OLD, 1000);
    assert_heard(&f, &next, GUEST_OUTPUT, 1300);
    assert_heard(&f, &again, GUEST_OLD, 1300);
    assert_heard(&f, &overlap, GUEST_OUTPUT, 1600);
    assert_int_equal(f.event.data.length, 300);
    assert_ptr_equal(f.event.data.data, bytes + 100);
}

#define RESUMED(number, of, offset, got, ...)                                                                          \
    {                                                                                                                  \
        .type = WIRE_RESUMED, .resumed = {                                                                             \
            .channel = number,                                                                                         \
            .start = of,                                                                                               \
            .stdin_offset = offset,                                                                                    \
            .taken = got,                                                                                              \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }

/* How much input was sent is init's to say, and only once, and only in answer to this gateway. */
TEST(test_where_input_goes_on)
{
    static const struct wire_message wrong[] = {
        RESUMED(ID(2), START + 1, 5000, 4000, .ended = 0),
        RESUMED(ID(2), START, 4000, 4001, .ended = 0),
        RESUMED(ID(2), START, 4000 + WIRE_WINDOW + 1, 4000, .ended = 0),
        RESUMED(ID(2), START, 5000, 4000, .closed = 2),
        RESUMED(ID(2), START, 5000, 4000, .ended = 2),
    };
    struct fixture f;
    struct wire_message taken = TAKEN(ID(2), 77, 0);
    struct wire_message earlier = RESUMED(ID(2), START - 1, 300, 200, .ended = 0);
    struct wire_message right = RESUMED(ID(2), START, 5000, 4000, .ended = 1);
    struct wire_message more = TAKEN(ID(2), 5000, 0);

    for (size_t i = 0; i < COUNT(wrong); i++) {
        resume(&f);
        assert_int_equal(guest_hear(&f.guest, &wrong[i], &f.event), -EBADMSG);
    }
    resume(&f);
    assert_heard(&f, &taken, GUEST_OLD, 1000);
    assert_heard(&f, &earlier, GUEST_OLD, 1000);
    assert_int_equal(guest_stdin_room(&f.stream), 0);
    assert_heard(&f, &right, GUEST_RESUMED, 1000);
    assert_true(f.event.resumed->ended);
    assert_int_equal(f.stream.sent, 5000);
    assert_int_equal(guest_stdin_room(&f.stream), WIRE_WINDOW - 1000);
    assert_int_equal(guest_hear(&f.guest, &right, &f.event), -EBADMSG);
    assert_heard(&f, &more, GUEST_TAKEN, 1000);
    /* Of one of its own it was not asked. */
    set_up(&f);
    assert_int_equal(guest_hear(&f.guest, &right, &f.event), -EBADMSG);
}

/* What was acknowledged to an earlier gateway and is lost: only of what is streamed, and with a bound. */
TEST(test_where_output_goes_on)
{
    static const struct wire_message wrong[] = {
        RESUMED(ID(2), START, 0, 0, .stdout_offset = UINT64_MAX),
        RESUMED(ID(2), START, 0, 0, .stdout_offset = (UINT64_C(1) << 56) + 1),
    };
    struct fixture f;
    struct wire_message known = RESUMED(ID(2), START, 0, 0, .stdout_offset = 999);
    struct wire_message gap = RESUMED(ID(2), START, 0, 0, .stdout_offset = 5000);
    struct wire_message next = OUT(ID(2), 5000, 300);

    for (size_t i = 0; i < COUNT(wrong); i++) {
        resume(&f);
        assert_int_equal(guest_hear(&f.guest, &wrong[i], &f.event), -EBADMSG);
    }
    resume(&f);
    f.stream.caps[0] = 1 << 20;
    assert_int_equal(guest_hear(&f.guest, &gap, &f.event), -EBADMSG);
    resume(&f);
    assert_heard(&f, &known, GUEST_RESUMED, 1000);
    assert_int_equal(f.event.gaps[0], 0);
    resume(&f);
    assert_heard(&f, &gap, GUEST_RESUMED, 5000);
    assert_int_equal(f.event.gaps[0], 4000);
    assert_int_equal(f.event.gaps[1], 0);
    assert_heard(&f, &next, GUEST_OUTPUT, 5300);
}

TEST(test_an_end_that_comes_twice)
{
    struct fixture f;
    struct wire_message gap = EXIT(ID(2), .stdout_offset = 1500, .stdout_total = 1600, TAIL(100));
    struct wire_message end = EXIT(ID(2), .stdout_offset = 900, .stdout_total = 1200, TAIL(300));

    resume(&f);
    assert_heard(&f, &gap, GUEST_OLD, 1000);
    assert_int_equal(f.guest.channel_count, 4);
    assert_heard(&f, &end, GUEST_EXIT, 1200);
    assert_int_equal(f.event.exit->stdout_tail.length, 200);
    assert_ptr_equal(f.event.exit->stdout_tail.data, bytes + 100);
    assert_int_equal(f.guest.channel_count, 3);
}

TEST(test_an_init_that_says_old_things_for_ever)
{
    struct fixture f;
    struct wire_message gap = OUT(ID(2), 100000, WIRE_DATA_MAX);
    int r = 0;
    size_t count = 0;

    resume(&f);
    while (r == 0 && count++ < 1000)
        r = guest_hear(&f.guest, &gap, &f.event);
    assert_int_equal(r, -EBADMSG);
    assert_true(count < 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_start),
        cmocka_unit_test(test_window),
        cmocka_unit_test(test_after_exit),
        cmocka_unit_test(test_stdin_room),
        cmocka_unit_test(test_what_was_under_way_to_an_earlier_gateway),
        cmocka_unit_test(test_where_input_goes_on),
        cmocka_unit_test(test_where_output_goes_on),
        cmocka_unit_test(test_an_end_that_comes_twice),
        cmocka_unit_test(test_an_init_that_says_old_things_for_ever),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
