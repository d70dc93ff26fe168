#include "airlock/flow.h"
#include "test.h"

#include <stdlib.h>

enum { ALL = 8 << 20 };

/* source -> flow -> target: the flow has the inner ends. */
struct ends {
    int source;
    int from;
    int to;
    int target;
};

static struct ends make(void)
{
    int a[2];
    int b[2];

    assert_return_code(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, a), errno);
    assert_return_code(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, b), errno);
    return (struct ends){a[0], a[1], b[0], b[1]};
}

static void release(struct ends *ends)
{
    (void)close(ends->source);
    (void)close(ends->from);
    (void)close(ends->to);
    (void)close(ends->target);
}

static uint8_t byte_at(size_t at)
{
    return (uint8_t)(at * 2654435761U >> 24);
}

/* As much as the source takes now. */
static size_t fill(int fd, size_t at)
{
    uint8_t piece[4096];
    ssize_t n = 1;

    while (at < ALL && n > 0) {
        size_t length = ALL - at < sizeof piece ? ALL - at : sizeof piece;
        for (size_t i = 0; i < length; i++)
            piece[i] = byte_at(at + i);
        n = send(fd, piece, length, MSG_DONTWAIT);
        at += n > 0 ? (size_t)n : 0;
    }
    return at;
}

static size_t drain(int fd, size_t at, size_t most)
{
    uint8_t piece[3000];

    for (size_t done = 0; done < most;) {
        ssize_t n = recv(fd, piece, sizeof piece, MSG_DONTWAIT);
        if (n <= 0)
            break;
        for (ssize_t i = 0; i < n; i++)
            assert_int_equal(piece[i], byte_at(at + (size_t)i));
        at += (size_t)n;
        done += (size_t)n;
    }
    return at;
}

TEST(all_bytes_come_in_order_however_slow_the_target_is)
{
    struct ends ends = make();
    struct flow flow;
    size_t sent = 0;
    size_t received = 0;
    bool has_waited = false;

    flow_init(&flow);
    while (received < ALL) {
        sent = fill(ends.source, sent);
        assert_int_equal(flow_pump(&flow, ends.from, ends.to), 0);
        has_waited = has_waited || flow_is_waiting(&flow);
        received = drain(ends.target, received, 20000);
    }
    assert_true(has_waited);
    assert_int_equal(flow.bytes, ALL);
    assert_true(flow.pipe[0] >= 0);
    assert_false(flow.has_end);
    (void)shutdown(ends.source, SHUT_WR);
    assert_int_equal(flow_pump(&flow, ends.from, ends.to), 0);
    assert_true(flow.has_end && flow.has_ended);
    assert_int_equal(recv(ends.target, &(char){0}, 1, MSG_DONTWAIT), 0);
    flow_release(&flow);
    release(&ends);
}

TEST(nothing_is_read_while_something_waits)
{
    struct ends ends = make();
    struct flow flow;
    size_t sent = 0;

    flow_init(&flow);
    for (int i = 0; i < 50; i++) {
        sent = fill(ends.source, sent);
        assert_int_equal(flow_pump(&flow, ends.from, ends.to), 0);
    }
    assert_true(flow_is_waiting(&flow));
    assert_true(sent < ALL);
    flow_release(&flow);
    release(&ends);
}

TEST(pushed_bytes_come_before_the_pumped_and_have_a_cap)
{
    static uint8_t large[FLOW_CAP + 1];
    struct ends ends = make();
    struct flow flow;
    char text[16] = "";

    flow_init(&flow);
    assert_int_equal(flow_push(&flow, -1, (const uint8_t *)"ab", 2), 0);
    assert_int_equal(flow_push(&flow, -1, (const uint8_t *)"cd", 2), 0);
    assert_true(flow_is_waiting(&flow));
    assert_int_equal(flow_push(&flow, -1, large, FLOW_CAP), -ENOBUFS);
    assert_int_equal(send(ends.source, "ef", 2, 0), 2);
    flow.is_watching = true;
    assert_int_equal(flow_pump(&flow, ends.from, ends.to), 0);
    assert_int_equal(recv(ends.target, text, sizeof text, 0), 6);
    assert_string_equal(text, "abcdef");
    assert_int_equal(flow.first_length, 2);
    assert_memory_equal(flow.first, "ef", 2);
    flow_release(&flow);
    release(&ends);
}

TEST(a_broken_target_is_an_error)
{
    struct ends ends = make();
    struct flow flow;

    flow_init(&flow);
    (void)close(ends.target);
    ends.target = -1;
    assert_int_equal(send(ends.source, "x", 1, 0), 1);
    assert_int_equal(flow_pump(&flow, ends.from, ends.to), -EPIPE);
    flow_release(&flow);
    release(&ends);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_bytes_come_in_order_however_slow_the_target_is),
        cmocka_unit_test(nothing_is_read_while_something_waits),
        cmocka_unit_test(pushed_bytes_come_before_the_pumped_and_have_a_cap),
        cmocka_unit_test(a_broken_target_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
