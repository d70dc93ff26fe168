#include "base/cleanup.h"
#include "cli/sink.h"
#include "test.h"
#include "wire/wire.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum { PIPE_SIZE = WIRE_WINDOW / 2, CAP = 1000 };

static uint8_t data[3 * WIRE_WINDOW];

/* The bytes at these offsets of the stream, which `data` is. */
static int take(struct sink *sink, uint64_t offset, size_t length)
{
    return sink_take(sink, offset, data + offset, length);
}

static void assert_read(int fd, size_t offset, size_t length)
{
    static uint8_t got[sizeof data];
    size_t have = 0;

    while (have < length) {
        ssize_t n = read(fd, got + have, length - have);
        assert_true(n > 0);
        have += (size_t)n;
    }
    assert_memory_equal(got, data + offset, length);
}

TEST(test_memory)
{
    struct sink sink;

    sink_init(&sink, -1, CAP);
    assert_int_equal(take(&sink, 0, 400), 0);
    assert_int_equal(take(&sink, 400, 600), 0);
    assert_int_equal(sink.collected.length, CAP);
    assert_memory_equal(sink.collected.data, data, CAP);
    assert_int_equal(sink.done, CAP);
    assert_false(sink_is_waiting(&sink));
    assert_true(take(&sink, CAP, 1) < 0);
    assert_int_equal(sink.collected.length, CAP);
    sink_release(&sink);
}

/* Init says where its bytes belong, and may neither repeat nor leave out any. */
TEST(test_offsets)
{
    static const struct {
        uint64_t offset;
        int result;
    } rows[] = {{0, -EBADMSG}, {99, -EBADMSG}, {100, 0}, {101, -EBADMSG}, {UINT64_MAX, -EBADMSG}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct sink sink;
        sink_init(&sink, -1, CAP);
        assert_int_equal(take(&sink, 0, 100), 0);
        assert_int_equal(sink_take(&sink, rows[i].offset, data, 10), rows[i].result);
        assert_int_equal(sink.collected.length, rows[i].result == 0 ? 110 : 100);
        assert_int_equal(sink_take(&sink, sink.received, data, 0), 0);
        sink_release(&sink);
    }
}

/* What the pipe does not take is kept in order, up to the window; the caller's descriptor stays as it is. */
TEST(test_blocked_pipe)
{
    int ends[2];
    struct sink sink;

    assert_return_code(pipe2(ends, O_CLOEXEC), errno);
    assert_return_code(fcntl(ends[1], F_SETPIPE_SZ, PIPE_SIZE), errno);
    sink_init(&sink, ends[1], 0);
    assert_int_equal(take(&sink, 0, PIPE_SIZE + WIRE_WINDOW / 2), 0);
    assert_int_equal(sink.done, PIPE_SIZE);
    assert_true(sink_is_waiting(&sink));
    assert_int_equal(take(&sink, sink.received, WIRE_WINDOW / 2), 0);
    assert_int_equal(sink.done, PIPE_SIZE);
    sink_flush(&sink);
    assert_int_equal(sink.done, PIPE_SIZE);
    assert_true(take(&sink, sink.received, 1) < 0); /* beyond the window */

    assert_read(ends[0], 0, PIPE_SIZE);
    sink_flush(&sink);
    assert_int_equal(sink.done, 2 * PIPE_SIZE);
    assert_read(ends[0], PIPE_SIZE, PIPE_SIZE);
    sink_flush(&sink);
    assert_read(ends[0], 2 * PIPE_SIZE, PIPE_SIZE);
    assert_int_equal(sink.done, PIPE_SIZE + WIRE_WINDOW);
    assert_int_equal(sink.waiting.length, 0);
    assert_int_equal(fcntl(ends[1], F_GETFL) & O_NONBLOCK, 0);
    sink_release(&sink);
    assert_return_code(close(ends[1]), errno);
    (void)close(ends[0]);
}

/* A reader that reads a little now and then. */
TEST(test_slow_reader)
{
    int ends[2];
    struct sink sink;
    size_t got = 0;

    assert_return_code(pipe2(ends, O_CLOEXEC), errno);
    sink_init(&sink, ends[1], 0);
    while (got < sizeof data) {
        size_t room = WIRE_WINDOW - (size_t)(sink.received - sink.done);
        size_t left = sizeof data - (size_t)sink.received;
        size_t part = room < 5000 ? room : 5000;
        assert_int_equal(take(&sink, sink.received, part < left ? part : left), 0);
        assert_int_equal(sink.received - sink.done, sink.waiting.length);
        size_t some = sizeof data - got < 3000 ? sizeof data - got : 3000;
        if (sink.done - got < some)
            some = (size_t)sink.done - got;
        assert_read(ends[0], got, some);
        got += some;
        sink_flush(&sink);
    }
    sink_release(&sink);
    close_fd(&ends[0]);
    close_fd(&ends[1]);
}

/* When the reader has gone everything is taken and thrown away. */
TEST(test_closed_reader)
{
    int ends[2];
    struct sink sink;

    assert_return_code(pipe2(ends, O_CLOEXEC), errno);
    sink_init(&sink, ends[1], 0);
    assert_int_equal(take(&sink, 0, WIRE_WINDOW), 0);
    assert_true(sink_is_waiting(&sink));
    (void)close(ends[0]);
    sink_flush(&sink);
    assert_true(sink.broken);
    assert_false(sink_is_waiting(&sink));
    assert_int_equal(sink.done, WIRE_WINDOW);
    for (size_t i = 0; i < 10; i++)
        assert_int_equal(sink_take(&sink, sink.received, data, sizeof data), 0);
    assert_int_equal(sink.done, sink.received);
    assert_int_equal(sink.waiting.length, 0);
    sink_release(&sink);
    (void)close(ends[1]);
}

TEST(test_closed_descriptor)
{
    struct sink sink;

    sink_init(&sink, 1000, 0);
    assert_true(sink.broken);
    assert_int_equal(take(&sink, 0, 100), 0);
    assert_int_equal(sink.done, 100);
    sink_release(&sink);
}

TEST(test_file)
{
    struct sink sink;
    FILE *file = tmpfile();

    assert_non_null(file);
    sink_init(&sink, fileno(file), 0);
    assert_true(sink.is_file);
    assert_int_equal(take(&sink, 0, sizeof data), 0);
    assert_int_equal(sink.done, sizeof data);
    assert_false(sink_is_waiting(&sink));
    rewind(file);
    assert_read(fileno(file), 0, sizeof data);
    sink_release(&sink);
    (void)fclose(file);
}

/* A device that is always full is no reader. */
TEST(test_full_device)
{
    int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    struct sink sink;

    assert_true(fd >= 0);
    sink_init(&sink, fd, 0);
    assert_int_equal(take(&sink, 0, 100), 0);
    assert_true(sink.broken);
    sink_release(&sink);
    (void)close(fd);
}

/* Often enough that the window never closes on a reader that keeps up. */
TEST(test_ack_due)
{
    struct sink sink;

    sink_init(&sink, -1, sizeof data);
    assert_false(sink_ack_due(&sink));
    assert_int_equal(take(&sink, 0, WIRE_WINDOW / 16 - 1), 0);
    assert_false(sink_ack_due(&sink));
    assert_int_equal(take(&sink, sink.received, 1), 0);
    assert_true(sink_ack_due(&sink));
    sink.acked = sink.done;
    assert_false(sink_ack_due(&sink));
    sink_release(&sink);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory),        cmocka_unit_test(test_offsets),
        cmocka_unit_test(test_blocked_pipe),  cmocka_unit_test(test_slow_reader),
        cmocka_unit_test(test_closed_reader), cmocka_unit_test(test_closed_descriptor),
        cmocka_unit_test(test_file),          cmocka_unit_test(test_full_device),
        cmocka_unit_test(test_ack_due),
    };
    (void)signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * 7 + i / 253);
    return cmocka_run_group_tests_name("cli/sink", tests, NULL, NULL);
}
