#include "cli/advice.h"
#include "test.h"
#include "wire/steps.h"

TEST(test_known)
{
    struct error err = {0};

    (void)error_set(&err, ERROR_SYSTEM, ENODEV, "mounting");
    advice_add(STEP_ROOT, &err);
    assert_string_equal(err.message,
                        "mounting: No such device; the kernel has no overlayfs; load it with: modprobe overlay");
    assert_int_equal(err.err, ENODEV);
}

TEST(test_unknown)
{
    static const struct {
        uint32_t step;
        int err;
    } rows[] = {{STEP_ROOT, EIO}, {STEP_NONE, ENODEV}, {STEP_COUNT, ENODEV}, {UINT32_MAX, 0}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct error err = {.err = rows[i].err, .message = "as it was"};
        advice_add(rows[i].step, &err);
        assert_string_equal(err.message, "as it was");
    }
}

TEST(test_doctor)
{
    static const struct {
        uint32_t step;
        enum error_code code;
        int err;
        bool pointed;
    } rows[] = {
        {STEP_CLONE, ERROR_SYSTEM, EPERM, true},       {STEP_INIT, ERROR_SYSTEM, EACCES, true},
        {STEP_NONE, ERROR_UNSUPPORTED, ENOTSUP, true}, {STEP_NONE, ERROR_INVALID, 0, false},
        {STEP_REQUEST, ERROR_INVALID, EINVAL, false},  {STEP_TEMPLATE, ERROR_SYSTEM, ENOENT, false},
        {STEP_DIRS, ERROR_SYSTEM, EPERM, false},       {STEP_ROOT, ERROR_SYSTEM, ELOOP, false},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct error err = {.code = rows[i].code, .err = rows[i].err, .message = "it failed"};
        advice_add_doctor(rows[i].step, &err);
        assert_string_equal(err.message, rows[i].pointed ? "it failed; 'sudo hutch doctor' says what this machine lacks"
                                                         : "it failed");
    }
}

TEST(test_no_room)
{
    struct error err = {.err = ENODEV};

    memset(err.message, 'x', sizeof err.message - 1);
    advice_add(STEP_ROOT, &err);
    assert_int_equal(strnlen(err.message, sizeof err.message), sizeof err.message - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_known), cmocka_unit_test(test_unknown),
                                       cmocka_unit_test(test_doctor), cmocka_unit_test(test_no_room)};
    return cmocka_run_group_tests_name("cli/advice", tests, NULL, NULL);
}
