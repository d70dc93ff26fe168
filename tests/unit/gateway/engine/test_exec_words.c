#include "gateway/engine/exec_words.h"
#include "test.h"
#include "wire/wire.h"

#include <stdlib.h>

/* The strings one after the other, with a bar between. */
static const char *gather(const struct exec_settings *settings, const char *const *env, int *ret_result)
{
    static char text[4096];
    struct buf strings = buf_init(WIRE_STRINGS_MAX);
    struct error err = {0};
    uint32_t argc = 0;
    uint32_t envc = 0;
    uint32_t count = 0;

    *ret_result = exec_words(settings, env, &strings, &argc, &envc, &err);
    for (size_t i = 0; i < strings.length && i < sizeof text - 1; i++) {
        text[i] = (char)(strings.data[i] == 0 ? '|' : strings.data[i]);
        text[i + 1] = '\0';
        count += strings.data[i] == 0;
    }
    if (*ret_result == 0)
        assert_int_equal(count, argc + envc);
    else
        assert_true(err.code == ERROR_INVALID || err.code == ERROR_LIMIT);
    buf_release(&strings);
    return text;
}

TEST(test_arguments_and_environment)
{
    const char *const argv[] = {"ls", "-l", NULL};
    const char *const sandbox[] = {"A=1", "B=2", "LANG=de", NULL};
    const char *const own[] = {"B=3", "C=4", "C=5", NULL};
    struct exec_settings settings = {.argv = argv, .env = own, .uid = 1};
    int r;

    assert_string_equal(gather(&settings, sandbox, &r),
                        "ls|-l|PATH=/usr/local/bin:/usr/bin:/bin|HOME=/home/sandbox|A=1|LANG=de|B=3|C=5|");
    assert_int_equal(r, 0);
    settings = (struct exec_settings){.shell = "exit", .has_terminal = true};
    assert_string_equal(gather(&settings, NULL, &r),
                        "/bin/sh|-c|exit|PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin|"
                        "HOME=/home/sandbox|LANG=C.UTF-8|TERM=xterm-256color|");
}

TEST(test_refused)
{
    const char *const none[] = {NULL};
    const char *const empty[] = {"", NULL};
    const char *const nameless[] = {"=x", NULL};
    const char *const valueless[] = {"x", NULL};
    char *huge = malloc(WIRE_STRINGS_MAX + 1);
    const char *const long_one[] = {"echo", huge, NULL};
    const struct exec_settings rows[] = {{.argv = none},
                                         {.argv = empty},
                                         {.argv = NULL},
                                         {.shell = "x", .env = nameless},
                                         {.shell = "x", .env = valueless},
                                         {.argv = long_one}};
    int r;

    assert_non_null(huge);
    memset(huge, 'x', WIRE_STRINGS_MAX);
    huge[WIRE_STRINGS_MAX] = '\0';
    for (size_t i = 0; i < COUNT(rows); i++) {
        (void)gather(&rows[i], NULL, &r);
        assert_true(r < 0);
    }
    free(huge);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_arguments_and_environment),
                                       cmocka_unit_test(test_refused)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
