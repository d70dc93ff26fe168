#include "keeper/liveness.h"

#include "test.h"

#define S UINT64_C(1000000000)

TEST(test_answers)
{
    struct liveness liveness = {0};
    uint64_t now = 7 * S;

    assert_int_equal(liveness_look(&liveness, now), LIVENESS_FINE);
    liveness_start(&liveness, 30000, now);
    assert_int_equal(liveness_answered(&liveness, 0, now), -EBADMSG);
    liveness_ready(&liveness, now);
    for (uint64_t i = 1; i < 100; i++) {
        assert_int_equal(liveness_look(&liveness, now + 5 * S - 1), LIVENESS_FINE);
        now += 5 * S;
        assert_int_equal(liveness_look(&liveness, now), LIVENESS_ASK);
        assert_int_equal(liveness.number, i);
        assert_int_equal(liveness_answered(&liveness, i + 1, now), -EBADMSG);
        now += 29 * S;
        assert_int_equal(liveness_look(&liveness, now), LIVENESS_FINE);
        assert_int_equal(liveness_answered(&liveness, i, now), 0);
        assert_int_equal(liveness_answered(&liveness, i, now), -EBADMSG);
    }
}

TEST(test_late)
{
    struct liveness liveness = {0};

    liveness_start(&liveness, 1000, S);
    liveness_ready(&liveness, S);
    assert_int_equal(liveness_look(&liveness, 2 * S), LIVENESS_ASK);
    assert_int_equal(liveness_look(&liveness, 3 * S - 1), LIVENESS_FINE);
    assert_int_equal(liveness_look(&liveness, 3 * S), LIVENESS_LATE);
    assert_int_equal(liveness_look(&liveness, 4 * S), LIVENESS_LATE);
    liveness_stop(&liveness);
    assert_int_equal(liveness_look(&liveness, 5 * S), LIVENESS_FINE);
}

TEST(test_never_ready)
{
    struct liveness liveness = {0};

    liveness_start(&liveness, 30000, S);
    assert_int_equal(liveness_look(&liveness, 301 * S - 1), LIVENESS_FINE);
    assert_int_equal(liveness_look(&liveness, 301 * S), LIVENESS_LATE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_answers), cmocka_unit_test(test_late),
                                       cmocka_unit_test(test_never_ready)};

    return cmocka_run_group_tests_name("keeper/liveness", tests, NULL, NULL);
}
