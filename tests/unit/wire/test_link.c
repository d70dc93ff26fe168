#include "base/fd.h"
#include "sample.h"
#include "test.h"
#include "wire/link.h"

#include <signal.h>

static uint8_t frame[WIRE_FRAME_MAX];
static const struct wire_message hello = {.type = WIRE_HELLO, .hello = {.features = 7, .channels_max = 9}};
static const struct wire_message created = {.type = WIRE_CREATED, .created = {.sandbox = 3}};

static int receive(int socket, enum wire_sender sender, enum wire_state wire_state, struct wire_message *message)
{
    return link_receive(socket, sender, wire_state, frame, message, NULL, NULL);
}

/* Small ones and large ones take different ways. */
TEST(test_every_message)
{
    int ends[2];

    test_sockets(ends);
    for (size_t row = 0; row < sample_count; row++) {
        for (enum sample_size size = SAMPLE_LEAST; size < SAMPLE_SIZES; size++) {
            const char *name = sample_rows[row].name;
            struct wire_message sent;
            struct wire_message received = {0};
            static uint8_t expected[WIRE_FRAME_MAX];
            (void)sample_fill(row, size, SAMPLE_NONE, &sent);
            int length = wire_encode(&sent, expected, sizeof expected);
            assert_row(name, link_send(ends[0], &sent, NULL, 0) == 0);
            assert_row(name, receive(ends[1], (enum wire_sender)sample_rows[row].senders,
                                     (enum wire_state)sample_rows[row].states, &received) == 1);
            assert_row(name, received.type == sent.type && memcmp(frame, expected, (size_t)length) == 0);
        }
    }
    fd_close_many(ends, 2);
}

TEST(test_descriptors)
{
    struct wire_message message;
    int ends[2];
    int fds[FD_PASS_MAX];
    size_t count = 99;

    test_sockets(ends);
    assert_int_equal(link_send(ends[0], &created, ends, 1), 0);
    assert_int_equal(link_receive(ends[1], WIRE_BY_KEEPER, WIRE_IN_RUNNING, frame, &message, fds, &count), 1);
    assert_int_equal(message.created.sandbox, 3);
    assert_int_equal(count, 1);
    assert_int_equal(fcntl(fds[0], F_GETFD), FD_CLOEXEC);
    fd_close_many(fds, count);
    fd_close_many(ends, 2);
}

TEST(test_not_permitted)
{
    static const struct {
        const char *name;
        const struct wire_message *message;
        size_t fd_count;
        enum wire_sender sender;
        enum wire_state state;
    } rows[] = {
        {"another sender", &hello, 0, WIRE_BY_CLIENT, WIRE_IN_STARTING},
        {"another state", &hello, 0, WIRE_BY_GUEST, WIRE_IN_RUNNING},
        {"a descriptor with what has none", &hello, 1, WIRE_BY_GUEST, WIRE_IN_STARTING},
        {"a descriptor too many", &created, 2, WIRE_BY_KEEPER, WIRE_IN_RUNNING},
    };
    int ends[2];
    int fds[FD_PASS_MAX];

    test_sockets(ends);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct wire_message message;
        size_t count;
        size_t open_before = test_open_fds();
        assert_int_equal(link_send(ends[0], rows[i].message, ends, rows[i].fd_count), 0);
        assert_row(rows[i].name,
                   link_receive(ends[1], rows[i].sender, rows[i].state, frame, &message, fds, &count) == -EBADMSG);
        assert_row(rows[i].name, test_open_fds() == open_before);
    }
    fd_close_many(ends, 2);
}

/* Who takes no descriptors gets none. */
TEST(test_takes_none)
{
    struct wire_message message;
    int ends[2];

    test_sockets(ends);
    size_t open_before = test_open_fds();
    assert_int_equal(link_send(ends[0], &created, ends, 1), 0);
    assert_true(receive(ends[1], WIRE_BY_KEEPER, WIRE_IN_RUNNING, &message) < 0);
    assert_int_equal(test_open_fds(), open_before);
    fd_close_many(ends, 2);
}

TEST(test_garbage)
{
    static const uint8_t garbage[] = {8, 0, 0, 0, WIRE_VERSION, 255, 0, 0};
    static uint8_t too_long[WIRE_FRAME_MAX + 1];
    struct wire_message message;
    int ends[2];
    int fds[FD_PASS_MAX];
    size_t count;

    test_sockets(ends);
    size_t open_before = test_open_fds();
    for (size_t length = 1; length <= sizeof garbage; length++) {
        assert_int_equal(fd_send(ends[0], garbage, length, ends, 2), 0);
        assert_int_equal(link_receive(ends[1], WIRE_BY_KEEPER, WIRE_IN_RUNNING, frame, &message, fds, &count),
                         -EBADMSG);
    }
    assert_int_equal(fd_send(ends[0], too_long, sizeof too_long, ends, 2), 0);
    assert_true(link_receive(ends[1], WIRE_BY_KEEPER, WIRE_IN_RUNNING, frame, &message, fds, &count) < 0);
    assert_int_equal(test_open_fds(), open_before);
    fd_close_many(ends, 2);
}

TEST(test_ends)
{
    struct wire_message message;
    struct wire_message impossible = {.type = WIRE_NOTHING};
    int ends[2];
    int r;

    test_sockets(ends);
    assert_int_equal(receive(ends[1], WIRE_BY_GUEST, WIRE_IN_STARTING, &message), -EAGAIN);
    assert_int_equal(link_send(ends[0], &impossible, NULL, 0), -EMSGSIZE);
    do
        r = link_send(ends[0], &hello, NULL, 0);
    while (r == 0);
    assert_int_equal(r, -EAGAIN);
    (void)close(ends[0]);
    do
        r = receive(ends[1], WIRE_BY_GUEST, WIRE_IN_STARTING, &message);
    while (r == 1);
    assert_int_equal(r, 0);
    assert_int_equal(link_send(ends[1], &hello, NULL, 0), -EPIPE);
    (void)close(ends[1]);
}

/* A peer that goes with our message unread has gone, no more: not an error of its own. */
TEST(test_reset)
{
    struct wire_message message;
    int ends[2];

    test_sockets(ends);
    assert_int_equal(link_send(ends[1], &hello, NULL, 0), 0);
    (void)close(ends[0]);
    assert_int_equal(receive(ends[1], WIRE_BY_GUEST, WIRE_IN_STARTING, &message), 0);
    (void)close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_message), cmocka_unit_test(test_descriptors), cmocka_unit_test(test_not_permitted),
        cmocka_unit_test(test_takes_none),    cmocka_unit_test(test_garbage),     cmocka_unit_test(test_ends),
        cmocka_unit_test(test_reset),
    };
    return cmocka_run_group_tests_name("wire/link", tests, NULL, NULL);
}
