#include "base/cleanup.h"
#include "init/output.h"
#include "test.h"
#include "wire/wire.h"

#include <stdlib.h>

enum { PIPE_SIZE = 1 << 20, FLOOD = WIRE_WINDOW + WIRE_WINDOW / 2, NO_CAP = 0 };

/* A stream whose byte at offset i is byte_at(i), so that a byte tells where it belongs. */
struct stream {
    struct output output;
    int in;
    uint64_t written;
};

static uint8_t byte_at(uint64_t offset)
{
    return (uint8_t)(offset * 131 + offset / 1000);
}

static struct stream make_stream(uint64_t cap)
{
    struct stream stream = {0};
    int ends[2];

    assert_return_code(pipe2(ends, O_CLOEXEC | O_NONBLOCK), errno);
    assert_return_code(fcntl(ends[0], F_SETPIPE_SZ, PIPE_SIZE), errno);
    output_init(&stream.output, ends[0], cap);
    stream.in = ends[1];
    return stream;
}

static void release_stream(struct stream *stream)
{
    output_release(&stream->output);
    assert_int_equal(stream->output.fd, -1);
    close_fd(&stream->in);
}

static void feed(struct stream *stream, size_t length)
{
    uint8_t *data = malloc(length);

    assert_non_null(data);
    for (size_t i = 0; i < length; i++)
        data[i] = byte_at(stream->written + i);
    assert_int_equal(write(stream->in, data, length), length);
    stream->written += length;
    free(data);
}

static void read_all(struct stream *stream)
{
    int r = 1;

    while (r == 1 && output_has_room(&stream->output))
        r = output_read(&stream->output);
    assert_true(r == 1 || r == -EAGAIN);
}

/* What channel.c does once a message has gone out. Returns how much there was. */
static size_t send_next(struct stream *stream, size_t most)
{
    const uint8_t *data;
    size_t length = output_next(&stream->output, most, &data);

    assert_true(length <= most);
    for (size_t i = 0; i < length; i++)
        assert_int_equal(data[i], byte_at(stream->output.sent + i));
    stream->output.sent += length;
    return length;
}

TEST(test_order)
{
    struct stream stream = make_stream(NO_CAP);

    feed(&stream, 1000);
    read_all(&stream);
    assert_int_equal(stream.output.stored, 1000);
    assert_int_equal(stream.output.total, 1000);
    assert_int_equal(send_next(&stream, 300), 300);
    assert_int_equal(output_unsent(&stream.output), 700);
    assert_int_equal(send_next(&stream, 10000), 700);
    assert_int_equal(send_next(&stream, 10000), 0);
    release_stream(&stream);
}

/* What goes round the end of the ring comes in two parts. */
TEST(test_wrap)
{
    struct stream stream = make_stream(NO_CAP);

    for (size_t round = 0; round < 20; round++) {
        size_t length = 100000 + round;
        size_t until_end = WIRE_WINDOW - stream.written % WIRE_WINDOW;
        feed(&stream, length);
        read_all(&stream);
        assert_int_equal(stream.output.stored, stream.written);
        size_t first = send_next(&stream, WIRE_WINDOW);
        assert_int_equal(first, length < until_end ? length : until_end);
        assert_int_equal(send_next(&stream, WIRE_WINDOW), length - first);
        assert_int_equal(output_ack(&stream.output, stream.written), 0);
    }
    release_stream(&stream);
}

/* Nothing is read beyond the window; each acknowledged byte makes room for one. */
TEST(test_full)
{
    struct stream stream = make_stream(NO_CAP);

    feed(&stream, FLOOD);
    read_all(&stream);
    assert_false(output_has_room(&stream.output));
    assert_int_equal(stream.output.stored, WIRE_WINDOW);
    assert_int_equal(send_next(&stream, WIRE_WINDOW), WIRE_WINDOW);
    assert_false(output_has_room(&stream.output));
    assert_int_equal(output_ack(&stream.output, 1000), 0);
    assert_true(output_has_room(&stream.output));
    read_all(&stream);
    assert_int_equal(stream.output.stored, WIRE_WINDOW + 1000);
    assert_int_equal(send_next(&stream, WIRE_WINDOW), 1000);
    assert_int_equal(output_resume(&stream.output, 1000), 0);
    assert_int_equal(send_next(&stream, WIRE_WINDOW), WIRE_WINDOW - 1000);
    assert_int_equal(send_next(&stream, WIRE_WINDOW), 1000);
    assert_int_equal(stream.output.total, WIRE_WINDOW + 1000);
    release_stream(&stream);
}

/* Beyond the cap bytes are counted and dropped, without anybody having to acknowledge. */
TEST(test_cap)
{
    static const uint64_t caps[] = {1, 1000, WIRE_WINDOW - 1, WIRE_WINDOW};

    for (size_t i = 0; i < COUNT(caps); i++) {
        struct stream stream = make_stream(caps[i]);
        feed(&stream, FLOOD);
        read_all(&stream);
        assert_true(output_has_room(&stream.output));
        assert_int_equal(stream.output.stored, caps[i]);
        assert_int_equal(stream.output.total, FLOOD);
        assert_int_equal(send_next(&stream, WIRE_WINDOW), caps[i]);
        feed(&stream, 1);
        read_all(&stream);
        assert_int_equal(stream.output.stored, caps[i]);
        assert_int_equal(stream.output.total, FLOOD + 1);
        release_stream(&stream);
    }
}

TEST(test_cap_above_window)
{
    struct stream stream = make_stream(WIRE_WINDOW + 5);

    feed(&stream, FLOOD);
    read_all(&stream);
    assert_false(output_has_room(&stream.output));
    assert_int_equal(stream.output.total, WIRE_WINDOW);
    assert_int_equal(send_next(&stream, WIRE_WINDOW), WIRE_WINDOW);
    assert_int_equal(output_ack(&stream.output, WIRE_WINDOW), 0);
    read_all(&stream);
    assert_int_equal(stream.output.stored, WIRE_WINDOW + 5);
    assert_int_equal(stream.output.total, FLOOD);
    assert_int_equal(send_next(&stream, WIRE_WINDOW), 5);
    release_stream(&stream);
}

/* Of 1000 bytes stored, 600 were sent and 300 acknowledged. */
TEST(test_offsets)
{
    static const struct {
        const char *name;
        int (*call)(struct output *output, uint64_t offset);
        uint64_t offset;
        int result;
        uint64_t acked;
        uint64_t sent;
    } rows[] = {
        {"ack: forgotten", output_ack, 299, 0, 300, 600},
        {"ack: again", output_ack, 300, 0, 300, 600},
        {"ack: some", output_ack, 301, 0, 301, 600},
        {"ack: all that was sent", output_ack, 600, 0, 600, 600},
        {"ack: never sent", output_ack, 601, -EINVAL, 300, 600},
        {"ack: never stored", output_ack, 1001, -EINVAL, 300, 600},
        {"ack: the last there could be", output_ack, UINT64_MAX, -EINVAL, 300, 600},
        {"resume: forgotten", output_resume, 299, 0, 300, 300},
        {"resume: from the start", output_resume, 0, 0, 300, 300},
        {"resume: all there is", output_resume, 300, 0, 300, 300},
        {"resume: some", output_resume, 500, 0, 500, 500},
        {"resume: what was not sent yet", output_resume, 700, 0, 700, 700},
        {"resume: nothing", output_resume, 1000, 0, 1000, 1000},
        {"resume: never stored", output_resume, 1001, -EINVAL, 300, 600},
        {"resume: the last there could be", output_resume, UINT64_MAX, -EINVAL, 300, 600},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct stream stream = make_stream(NO_CAP);
        feed(&stream, 1000);
        read_all(&stream);
        assert_int_equal(send_next(&stream, 600), 600);
        assert_int_equal(output_ack(&stream.output, 300), 0);
        assert_row(rows[i].name, rows[i].call(&stream.output, rows[i].offset) == rows[i].result);
        assert_row(rows[i].name, stream.output.acked == rows[i].acked);
        assert_row(rows[i].name, stream.output.sent == rows[i].sent);
        assert_row(rows[i].name, send_next(&stream, 1000) == 1000 - rows[i].sent);
        release_stream(&stream);
    }
}

TEST(test_end)
{
    struct stream stream = make_stream(NO_CAP);

    assert_int_equal(output_read(&stream.output), -EAGAIN);
    feed(&stream, 10);
    close_fd(&stream.in);
    assert_int_equal(output_read(&stream.output), 1);
    assert_int_equal(output_read(&stream.output), 0);
    assert_int_equal(stream.output.fd, -1);
    assert_int_equal(send_next(&stream, 100), 10);
    release_stream(&stream);
}

/* A new client may hear what was under way to the old one, and acknowledge it before it is sent again. */
TEST(test_acknowledged_ahead)
{
    struct stream stream = make_stream(0);

    feed(&stream, 1000);
    read_all(&stream);
    assert_int_equal(send_next(&stream, 600), 600);
    assert_int_equal(output_resume(&stream.output, 100), 0);
    assert_int_equal(output_ack(&stream.output, 601), -EINVAL);
    assert_int_equal(output_ack(&stream.output, 500), 0);
    assert_int_equal(stream.output.sent, 500);
    assert_int_equal(output_ack(&stream.output, 300), 0);
    assert_int_equal(stream.output.sent, 500);
    assert_int_equal(send_next(&stream, 1000), 500);
    assert_int_equal(output_ack(&stream.output, 1000), 0);
    release_stream(&stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_wrap),
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_cap),
        cmocka_unit_test(test_cap_above_window),
        cmocka_unit_test(test_offsets),
        cmocka_unit_test(test_end),
        cmocka_unit_test(test_acknowledged_ahead),
    };
    return cmocka_run_group_tests_name("init/output", tests, NULL, NULL);
}
