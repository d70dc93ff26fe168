#include "gateway/net/sse.h"
#include "test.h"

static void expect(const char *event, const char *id, const char *data, size_t length, const char *expected)
{
    struct buf buf = buf_init(1000);

    assert_int_equal(sse_format(&buf, event, id, data, length), 0);
    assert_int_equal(buf.length, strlen(expected));
    assert_memory_equal(buf.data, expected, buf.length);
    buf_release(&buf);
}

TEST(events)
{
    expect(NULL, NULL, "x", 1, "data: x\n\n");
    expect("stdout", "12", "x", 1, "event: stdout\nid: 12\ndata: x\n\n");
    expect(NULL, NULL, "", 0, "data: \n\n");
    expect(NULL, NULL, "a\nb\r\nc\rd", 8, "data: a\ndata: b\ndata: c\ndata: d\n\n");
    expect(NULL, NULL, "a\n", 2, "data: a\n\n");
    expect(NULL, NULL, "\n\na", 3, "data: \ndata: \ndata: a\n\n");
    expect(NULL, NULL, "a\r", 2, "data: a\n\n");
    /* Nothing in the data is another field or another event. */
    expect(NULL, NULL, "a\n\nevent: b\n", 12, "data: a\ndata: \ndata: event: b\n\n");
}

TEST(what_is_refused_leaves_nothing)
{
    struct buf buf = buf_init(20);

    assert_int_equal(sse_format(&buf, "a\nb", NULL, "", 0), -EINVAL);
    assert_int_equal(sse_format(&buf, NULL, "a\rb", "", 0), -EINVAL);
    assert_int_equal(sse_format(&buf, NULL, NULL, "a long line of data", 19), -ENOBUFS);
    assert_int_equal(buf.length, 0);
    buf_release(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events),
        cmocka_unit_test(what_is_refused_leaves_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
