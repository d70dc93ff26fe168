#include "keeper/environment.h"

#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* What a build with sanitizers adds. */
#ifdef HUTCH_SANITIZED
enum { MORE = 2 };
#else
enum { MORE = 0 };
#endif

TEST(test_passed_on)
{
    char *const from[] = {(char[]){"PATH=/bin"},
                          (char[]){"HUTCH_SERVER_LISTEN=a"},
                          (char[]){"HUTCH_API_KEY=k"},
                          (char[]){"HUTCH_ADMIN_PASSWORD=p"},
                          (char[]){"HUTCH_API_KEYS=no"},
                          (char[]){"HUTCHX=1"},
                          (char[]){"HUTCH_LOGGING_LEVEL=debug"},
                          NULL};
    struct environment environment;
    struct error err = {0};
    static char listen[] = "HUTCH_SERVER_LISTEN=b";

    assert_int_equal(environment_init(&environment, from, NULL, &err), 0);
    assert_int_equal(environment.count, 3 + MORE);
    assert_string_equal(environment.variables[0], "HUTCH_SERVER_LISTEN=a");
    assert_string_equal(environment.variables[1], "HUTCH_API_KEYS=no");
    assert_string_equal(environment.variables[2], "HUTCH_LOGGING_LEVEL=debug");
    assert_null(environment.variables[environment.count]);
    assert_int_equal(environment_init(&environment, from, listen, &err), 0);
    assert_int_equal(environment.count, 3 + MORE);
    assert_string_equal(environment.variables[2], "HUTCH_SERVER_LISTEN=b");
}

TEST(test_too_many)
{
    static char *from[ENVIRONMENT_MAX + 2];
    static char one[] = "HUTCH_X=1";
    struct environment environment;
    struct error err = {0};

    for (size_t i = 0; i <= ENVIRONMENT_MAX; i++)
        from[i] = one;
    assert_int_equal(environment_init(&environment, from, NULL, &err), -EINVAL);
    from[ENVIRONMENT_MAX] = NULL;
    assert_int_equal(environment_init(&environment, from, one, &err), 0);
    assert_null(environment.variables[ENVIRONMENT_MAX + 1 + MORE]);
}

TEST(test_presets)
{
    struct error err = {0};
    enum { KEY = ENVIRONMENT_KEY_BYTES };
    char text[64];
    char again[64];
    int fd = -1;

    (void)unsetenv("HUTCH_API_KEY");
    (void)unsetenv("HUTCH_ADMIN_PASSWORD");
    assert_int_equal(environment_take_presets(&fd, &err), 0);
    assert_int_equal(pread(fd, text, sizeof text, 0), 2 + KEY);
    assert_memory_equal(text, "\0", 2);
    (void)close(fd);
    (void)setenv("HUTCH_API_KEY", "key", 1);
    assert_int_equal(environment_take_presets(&fd, &err), 0);
    assert_int_equal(pread(fd, again, sizeof again, 0), 5 + KEY);
    assert_memory_equal(again, "\0key", 5);
    assert_memory_not_equal(again + 5, text + 2, KEY);
    assert_true(write(fd, "x", 1) < 0);
    /* Taken once. */
    assert_null(getenv("HUTCH_API_KEY"));
    assert_int_equal(environment_drop_presets(&fd, &err), 0);
    assert_int_equal(pread(fd, text, sizeof text, 0), 2 + KEY);
    assert_memory_equal(text, "\0", 2);
    assert_memory_equal(text + 2, again + 5, KEY);
    assert_true(write(fd, "x", 1) < 0);
    (void)close(fd);
    static char large[1026];
    memset(large, 'x', sizeof large - 1);
    (void)setenv("HUTCH_ADMIN_PASSWORD", large, 1);
    assert_int_equal(environment_take_presets(&fd, &err), -EINVAL);
    assert_null(getenv("HUTCH_ADMIN_PASSWORD"));
}

TEST(test_wiped)
{
    static char variable[] = "HUTCH_ADMIN_PASSWORD=secret";
    struct error err = {0};
    int fd = -1;

    assert_int_equal(putenv(variable), 0);
    assert_int_equal(environment_take_presets(&fd, &err), 0);
    assert_memory_equal(variable, "HUTCH_ADMIN_PASSWORD=\0\0\0\0\0\0", sizeof variable);
    (void)close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_passed_on), cmocka_unit_test(test_too_many),
                                       cmocka_unit_test(test_presets), cmocka_unit_test(test_wiped)};

    return cmocka_run_group_tests_name("keeper/environment", tests, NULL, NULL);
}
