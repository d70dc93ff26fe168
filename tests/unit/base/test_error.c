#include "base/error.h"
#include "test.h"

#include <stdio.h>

TEST(test_set)
{
    struct error err;

    assert_int_equal(error_set(&err, ERROR_DENIED, EPERM, "mounting %s", "/proc"), -EPERM);
    assert_int_equal(err.code, ERROR_DENIED);
    assert_int_equal(err.err, EPERM);
    assert_string_equal(err.message, "mounting /proc: Operation not permitted");

    assert_int_equal(error_set(&err, ERROR_INVALID, 0, "no %d", 1), -EINVAL);
    assert_int_equal(err.code, ERROR_INVALID);
    assert_int_equal(err.err, 0);
    assert_string_equal(err.message, "no 1");
}

TEST(test_errno)
{
    struct error err;

    errno = ENOENT;
    assert_int_equal(error_errno(&err, "opening"), -ENOENT);
    assert_int_equal(err.code, ERROR_SYSTEM);
    assert_string_equal(err.message, "opening: No such file or directory");
}

TEST(test_nobody_listens)
{
    assert_int_equal(error_set(NULL, ERROR_SYSTEM, EIO, "x"), -EIO);
    error_wrap(NULL, "x");
}

TEST(test_wrap)
{
    struct error err;

    (void)error_set(&err, ERROR_SYSTEM, EIO, "inner");
    error_wrap(&err, "middle %d", 2);
    error_wrap(&err, "outer");
    assert_string_equal(err.message, "outer: middle 2: inner: Input/output error");
    assert_int_equal(err.err, EIO);
    assert_int_equal(err.code, ERROR_SYSTEM);
}

/* A message that does not fit is cut, never longer and always ended. */
TEST(test_cut)
{
    for (int width = ERROR_MESSAGE_MAX - 30; width < ERROR_MESSAGE_MAX + 30; width++) {
        struct error err;
        memset(&err, 'x', sizeof err);
        assert_int_equal(error_set(&err, ERROR_SYSTEM, EIO, "%*s", width, "end"), -EIO);
        size_t all = (size_t)width + strlen(": Input/output error");
        assert_int_equal(strnlen(err.message, sizeof err.message),
                         all < sizeof err.message ? all : sizeof err.message - 1);
        error_wrap(&err, "%*s", width, "outer");
        size_t context = (size_t)width < sizeof err.message ? (size_t)width : sizeof err.message - 1;
        assert_in_range(strnlen(err.message, sizeof err.message), context, sizeof err.message - 1);
    }
}

TEST(test_code_names)
{
    assert_string_equal(error_code_name(ERROR_NONE), "none");
    assert_string_equal(error_code_name(ERROR_NOT_FOUND), "not_found");
    assert_string_equal(error_code_name((enum error_code)(ERROR_SYSTEM + 1)), "unknown");
    assert_string_equal(error_code_name((enum error_code) - 1), "unknown");
    for (enum error_code a = ERROR_NONE; a <= ERROR_SYSTEM; a++) {
        for (enum error_code b = ERROR_NONE; b < a; b++)
            assert_string_not_equal(error_code_name(a), error_code_name(b));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set),  cmocka_unit_test(test_errno), cmocka_unit_test(test_nobody_listens),
        cmocka_unit_test(test_wrap), cmocka_unit_test(test_cut),   cmocka_unit_test(test_code_names),
    };
    return cmocka_run_group_tests_name("base/error", tests, NULL, NULL);
}
