#include "base/buf.h"
#include "test.h"

#include <stdio.h>

TEST(test_append_grows)
{
    struct buf buf = buf_init(5000);

    for (unsigned i = 0; i < 5000; i++) {
        uint8_t byte = (uint8_t)(i * 31);
        assert_int_equal(buf_append(&buf, &byte, 1), 0);
    }
    assert_int_equal(buf.length, 5000);
    for (unsigned i = 0; i < 5000; i++)
        assert_int_equal(buf.data[i], (uint8_t)(i * 31));
    buf_release(&buf);
}

TEST(test_append_nothing)
{
    struct buf buf = buf_init(0);

    assert_int_equal(buf_append(&buf, NULL, 0), 0);
    assert_int_equal(buf_append(&buf, "x", 1), -ENOBUFS);
    assert_int_equal(buf.length, 0);
    buf_release(&buf);
}

TEST(test_append_cap)
{
    static const size_t too_many[] = {1, 2, 1000, SIZE_MAX - 9, SIZE_MAX};
    struct buf buf = buf_init(10);

    assert_int_equal(buf_append(&buf, "0123456789", 10), 0);
    for (size_t i = 0; i < COUNT(too_many); i++)
        assert_int_equal(buf_append(&buf, "x", too_many[i]), -ENOBUFS);
    assert_int_equal(buf.length, 10);
    assert_memory_equal(buf.data, "0123456789", 10);
    buf_release(&buf);
}

TEST(test_release)
{
    struct buf buf = buf_init(10);

    assert_int_equal(buf_append(&buf, "0123456789", 10), 0);
    buf_release(&buf);
    assert_null(buf.data);
    assert_int_equal(buf.length, 0);
    assert_int_equal(buf_append(&buf, "0123456789", 10), 0);
    assert_int_equal(buf_append(&buf, "x", 1), -ENOBUFS);
    buf_release(&buf);
}

TEST(test_printf)
{
    struct buf buf = buf_init(2000);

    assert_int_equal(buf_printf(&buf, "%s-%d", "a", 7), 0);
    assert_int_equal(buf_printf(&buf, "%*s", 1024, ""), -ENOBUFS);
    assert_int_equal(buf.length, 3);
    assert_memory_equal(buf.data, "a-7", 3);
    assert_int_equal(buf_printf(&buf, "%*s", 1023, ""), 0);
    assert_int_equal(buf_printf(&buf, "%*s", 975, ""), -ENOBUFS);
    assert_int_equal(buf_printf(&buf, "%*s", 974, ""), 0);
    assert_int_equal(buf.length, 2000);
    buf_release(&buf);
}

#define BAD "\xef\xbf\xbd"

static const struct {
    const char *text;
    const char *json;
} strings[] = {
    {"", "\"\""},
    {"plain", "\"plain\""},
    {"a\"b\\c", "\"a\\\"b\\\\c\""},
    {"\n\t\r\b\f", "\"\\n\\t\\r\\u0008\\u000c\""},
    {"\x01\x1f\x7f", "\"\\u0001\\u001f\\u007f\""},
    {"/\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\"/\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\""},
    {"\xff", "\"" BAD "\""},
    {"a\xe2\x82", "\"a" BAD BAD "\""},
    {"\xc0\x80", "\"" BAD BAD "\""},
    {"\xed\xa0\x80", "\"" BAD BAD BAD "\""},
    {"\xc3(", "\"" BAD "(\""},
};

TEST(test_json)
{
    for (size_t i = 0; i < COUNT(strings); i++) {
        struct buf buf = buf_init(100);
        assert_int_equal(buf_append_json(&buf, strings[i].text, strlen(strings[i].text)), 0);
        assert_row(strings[i].json, buf.length == strlen(strings[i].json));
        assert_memory_equal(buf.data, strings[i].json, buf.length);
        buf_release(&buf);
    }
}

TEST(test_json_nul)
{
    struct buf buf = buf_init(100);

    assert_int_equal(buf_append_json(&buf, "a\0b", 3), 0);
    assert_int_equal(buf.length, 10);
    assert_memory_equal(buf.data, "\"a\\u0000b\"", 10);
    assert_int_equal(buf_append_json(&buf, NULL, 0), 0);
    assert_memory_equal(buf.data + 10, "\"\"", 2);
    buf_release(&buf);
}

/* Whatever the cap is, either all of it is there or nothing. */
TEST(test_json_cap)
{
    static const char text[] = "a\n\x01\xff\xe2\x82\xac\"";
    static const char json[] = "[\"a\\n\\u0001" BAD "\xe2\x82\xac\\\"\"";

    for (size_t cap = 1; cap < sizeof json + 2; cap++) {
        struct buf buf = buf_init(cap);
        assert_int_equal(buf_append(&buf, "[", 1), 0);
        int r = buf_append_json(&buf, text, sizeof text - 1);
        assert_int_equal(r, cap < sizeof json - 1 ? -ENOBUFS : 0);
        assert_int_equal(buf.length, r < 0 ? 1 : sizeof json - 1);
        assert_memory_equal(buf.data, json, buf.length);
        buf_release(&buf);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_append_grows), cmocka_unit_test(test_append_nothing), cmocka_unit_test(test_append_cap),
        cmocka_unit_test(test_release),      cmocka_unit_test(test_printf),         cmocka_unit_test(test_json),
        cmocka_unit_test(test_json_nul),     cmocka_unit_test(test_json_cap),
    };
    return cmocka_run_group_tests_name("base/buf", tests, NULL, NULL);
}
