#include "base/log.h"

#include "test.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

static char text[16384];

static const char *written(struct log *log, void (*write_some)(const struct log *log))
{
    log->fd = memfd_create("log", MFD_CLOEXEC);
    log->program = "test";
    write_some(log);
    ssize_t n = pread(log->fd, text, sizeof text - 1, 0);
    assert_true(n >= 0);
    text[n] = '\0';
    (void)close(log->fd);
    return text;
}

static void write_one(const struct log *log)
{
    log_event(log, LOG_LEVEL_WARN, "thing", LOG_TEXT("plain", "a.b:c"), LOG_TEXT("odd", "a b=\"c\"\n\x1b[0m"),
              LOG_NUMBER("count", 18446744073709551615U), LOG_TEXT("empty", ""));
}

TEST(test_text)
{
    struct log log = {.level = LOG_LEVEL_WARN, .format = LOG_FORMAT_TEXT};
    const char *line = written(&log, write_one);

    assert_int_equal(strncmp(line, "time=20", 7), 0);
    assert_non_null(strstr(line, "Z level=warn program=test event=thing plain=a.b:c odd=\"a b=\\\"c\\\"\\n\\u001b[0m\" "
                                 "count=18446744073709551615 empty=\"\"\n"));
    assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
}

TEST(test_json)
{
    struct log log = {.level = LOG_LEVEL_DEBUG, .format = LOG_FORMAT_JSON};
    const char *line = written(&log, write_one);

    assert_int_equal(strncmp(line, "{\"time\":\"20", 11), 0);
    assert_non_null(
        strstr(line, "Z\",\"level\":\"warn\",\"program\":\"test\",\"event\":\"thing\",\"plain\":\"a.b:c\",\"odd\":"
                     "\"a b=\\\"c\\\"\\n\\u001b[0m\",\"count\":18446744073709551615,\"empty\":\"\"}\n"));
}

TEST(test_level)
{
    struct log log = {.level = LOG_LEVEL_ERROR};

    assert_string_equal(written(&log, write_one), "");
}

static void write_large(const struct log *log)
{
    static char large[9000];

    memset(large, 'x', sizeof large - 1);
    log_event(log, LOG_LEVEL_INFO, "thing", LOG_TEXT("large", large), LOG_NUMBER("after", 1));
}

TEST(test_large)
{
    struct log log = {.level = LOG_LEVEL_INFO};
    const char *line = written(&log, write_large);

    assert_null(strstr(line, "xxx"));
    assert_non_null(strstr(line, "event=thing after=1\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_text), cmocka_unit_test(test_json),
                                       cmocka_unit_test(test_level), cmocka_unit_test(test_large)};

    return cmocka_run_group_tests_name("base/log", tests, NULL, NULL);
}
