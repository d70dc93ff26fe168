#include "attack/host.h"
#include "attack/told.h"
#include "test.h"

static int parse(const char *json, struct told *ret_told)
{
    return told_parse(json, strlen(json), ret_told);
}

TEST(test_answer)
{
    struct told told;

    assert_int_equal(
        parse("{\"exit_code\":137,\"limit\":\"memory\",\"stdout\":\"a\\tb\\n\\\"limit\\\":\\\\\",\"usage\":"
              "{\"memory_peak_bytes\":67108864}}\n",
              &told),
        0);
    assert_true(told.has_limit);
    assert_string_equal(told.limit, "memory");
    assert_int_equal(told.memory_peak_bytes, 67108864);
    assert_int_equal(told.out.length, strlen("a\tb\n\"limit\":\\"));
    assert_memory_equal(told.out.data, "a\tb\n\"limit\":\\", told.out.length);
    told_release(&told);
}

TEST(test_no_limit)
{
    struct told told;

    assert_int_equal(parse("{\"limit\":null,\"stdout\":\"\"}", &told), 0);
    assert_false(told.has_limit);
    assert_int_equal(told.out.length, 0);
    told_release(&told);
}

TEST(test_no_answer)
{
    static const char *const rows[] = {"",
                                       "x",
                                       "{}",
                                       "{\"stdout\":",
                                       "{\"stdout\":1}",
                                       "{\"stdout\":\"cut",
                                       "{\"stdout\":\"cut\\",
                                       "{\"limit\":\"longer than any limit there is\",\"stdout\":\"\"}"};

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct told told;
        assert_row(rows[i], parse(rows[i], &told) == -EBADMSG);
        told_release(&told);
    }
}

TEST(test_difference)
{
    char line[32];

    assert_null(host_difference("a\nb\n", "b\na\n", line, sizeof line));
    assert_null(host_difference("a\nb\n", "a\n", line, sizeof line));
    assert_string_equal(host_difference("a is 1\n", "a is 2\n", line, sizeof line), "a is 2");
    assert_string_equal(host_difference("ab\n", "a\n", line, sizeof line), "a");
    assert_string_equal(host_difference("", "abc\n", line, 3), "ab");
}

TEST(test_host)
{
    static const char *const files[] = {"/etc/passwd", "/no-such-file"};
    struct buf before = buf_init(1 << 18);
    struct buf now = buf_init(1 << 18);
    char line[256];

    assert_int_equal(host_describe(files, COUNT(files), &before), 0);
    assert_int_equal(host_describe(files, COUNT(files), &now), 0);
    assert_null(host_difference((char *)before.data, (char *)now.data, line, sizeof line));
    assert_non_null(strstr((char *)before.data, "/proc/sys/kernel/core_pattern is "));
    assert_non_null(strstr((char *)before.data, "/no-such-file is not there\n"));
    buf_release(&before);
    buf_release(&now);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answer),     cmocka_unit_test(test_no_limit), cmocka_unit_test(test_no_answer),
        cmocka_unit_test(test_difference), cmocka_unit_test(test_host),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
