#include "gateway/surface/writer.h"
#include "test.h"

static void assert_written(struct writer *writer, const char *expected)
{
    assert_int_equal(writer_end(writer), 0);
    assert_int_equal(buf_append(&writer->buf, "", 1), 0);
    assert_string_equal((char *)writer->buf.data, expected);
    writer_release(writer);
}

TEST(everything_there_is)
{
    struct writer writer = writer_init(4096);

    writer_open(&writer, NULL, '{');
    writer_text(&writer, "text", "a\"b");
    writer_text(&writer, "none", NULL);
    writer_bytes(&writer, "bytes", "x\0\xfe", 3);
    writer_number(&writer, "number", -5);
    writer_milli(&writer, "milli", 1050);
    writer_switch(&writer, "yes", true);
    writer_open(&writer, "list", '[');
    writer_number(&writer, NULL, 1);
    writer_open(&writer, NULL, '{');
    writer_close(&writer, '}');
    writer_close(&writer, ']');
    writer_json(&writer, "json", "[2]");
    writer_time(&writer, "time", 1000000000123);
    writer_time(&writer, "never", 0);
    writer_close(&writer, '}');
    assert_written(&writer, "{\"text\":\"a\\\"b\",\"none\":null,\"bytes\":\"x\\u0000\xef\xbf\xbd\",\"number\":-5,"
                            "\"milli\":1.050,\"yes\":true,\"list\":[1,{}],\"json\":[2],"
                            "\"time\":\"2001-09-09T01:46:40.123Z\",\"never\":null}");
}

TEST(base64_of_any_length)
{
    static const struct {
        const char *bytes;
        const char *text;
    } rows[] = {{"", "\"\""}, {"a", "\"YQ==\""}, {"ab", "\"YWI=\""}, {"abc", "\"YWJj\""}, {"abcd", "\"YWJjZA==\""}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct writer writer = writer_init(64);
        writer_base64(&writer, NULL, rows[i].bytes, strlen(rows[i].bytes));
        assert_written(&writer, rows[i].text);
    }
}

TEST(long_base64_has_no_seams)
{
    enum { LENGTH = 200001 };
    static uint8_t bytes[LENGTH];
    struct writer writer = writer_init(2 * LENGTH);

    writer_base64(&writer, NULL, bytes, LENGTH);
    assert_int_equal(writer_end(&writer), 0);
    assert_int_equal(writer.buf.length, 2 + (LENGTH + 2) / 3 * 4);
    for (size_t i = 1; i + 1 < writer.buf.length; i++)
        assert_int_equal(writer.buf.data[i], 'A');
    writer_release(&writer);
}

TEST(json_of_any_length)
{
    struct writer writer = writer_init(8192);
    char json[5000];

    memset(json, ' ', sizeof json);
    json[0] = '[';
    json[sizeof json - 2] = ']';
    json[sizeof json - 1] = '\0';
    writer_json(&writer, NULL, json);
    assert_int_equal(writer_end(&writer), 0);
    assert_int_equal(writer.buf.length, sizeof json - 1);
    assert_memory_equal(writer.buf.data, json, sizeof json - 1);
    writer_release(&writer);
}

TEST(what_does_not_fit_is_told_at_the_end)
{
    struct writer writer = writer_init(8);

    writer_text(&writer, NULL, "too long for that");
    writer_number(&writer, NULL, 1);
    assert_int_equal(writer_end(&writer), -ENOBUFS);
    writer_release(&writer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_there_is),
        cmocka_unit_test(base64_of_any_length),
        cmocka_unit_test(long_base64_has_no_seams),
        cmocka_unit_test(json_of_any_length),
        cmocka_unit_test(what_does_not_fit_is_told_at_the_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
