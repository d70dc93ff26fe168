#include "keeper/reload.h"
#include "test.h"

#define LIMIT_NS (RELOAD_LIMIT_MS * UINT64_C(1000000))

TEST(test_ready)
{
    struct reload reload = {0};

    assert_int_equal(reload_ready(&reload, 0), -EBADMSG);
    reload_told(&reload, 4, 100);
    assert_int_equal(reload.until_ns, 0);
    assert_int_equal(reload_answered(&reload, 4), -EBADMSG);
    assert_int_equal(reload_ready(&reload, 3), -EBADMSG);
    assert_int_equal(reload_ready(&reload, 5), -EBADMSG);
    assert_int_equal(reload_ready(&reload, 4), 0);
    assert_int_equal(reload_ready(&reload, 4), -EBADMSG);
}

TEST(test_answers)
{
    struct reload reload = {0};

    reload_told(&reload, 1, 0);
    assert_int_equal(reload_ready(&reload, 1), 0);
    assert_int_equal(reload_answered(&reload, 1), -EBADMSG);
    reload_told(&reload, 2, 100);
    assert_int_equal(reload.until_ns, 100 + LIMIT_NS);
    reload_told(&reload, 4, 200);
    assert_int_equal(reload_answered(&reload, 5), -EBADMSG);
    assert_int_equal(reload_answered(&reload, 2), 0);
    assert_int_equal(reload.until_ns, 200 + LIMIT_NS);
    assert_int_equal(reload_answered(&reload, 2), -EBADMSG);
    assert_int_equal(reload_answered(&reload, 4), 1);
    assert_int_equal(reload.until_ns, 0);
    assert_int_equal(reload_answered(&reload, 4), -EBADMSG);
}

TEST(test_late)
{
    struct reload reload = {0};

    reload_told(&reload, 1, 0);
    assert_false(reload_is_late(&reload, UINT64_MAX));
    assert_int_equal(reload_ready(&reload, 1), 0);
    reload_told(&reload, 2, 100);
    assert_false(reload_is_late(&reload, 100 + LIMIT_NS - 1));
    assert_true(reload_is_late(&reload, 100 + LIMIT_NS));
    assert_false(reload_is_late(&reload, 100 + LIMIT_NS));
    assert_int_equal(reload_answered(&reload, 2), 1);
}

TEST(test_forgotten)
{
    struct reload reload = {.is_wanted = true};

    reload_told(&reload, 1, 0);
    assert_int_equal(reload_ready(&reload, 1), 0);
    reload_told(&reload, 2, 100);
    reload_forget(&reload);
    assert_true(reload.is_wanted);
    assert_int_equal(reload.until_ns, 0);
    assert_int_equal(reload_answered(&reload, 2), -EBADMSG);
    reload_told(&reload, 2, 300);
    assert_int_equal(reload_ready(&reload, 2), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ready), cmocka_unit_test(test_answers),
                                       cmocka_unit_test(test_late), cmocka_unit_test(test_forgotten)};

    return cmocka_run_group_tests_name("keeper/reload", tests, NULL, NULL);
}
