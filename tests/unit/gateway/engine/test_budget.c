#include "gateway/engine/budget.h"
#include "test.h"

enum { MIB = 1 << 20, LEAST = 2 * MIB };

TEST(what_is_there_is_given)
{
    struct budget budget;
    struct budget_share share;

    budget_init(&budget, 0);
    assert_int_equal(budget_take(&budget, UINT64_C(1) << 40, LEAST, &share), 0);
    assert_int_equal(share.least + share.extra, UINT64_C(1) << 40);
    budget_init(&budget, 768 * MIB);
    assert_int_equal(budget_take(&budget, 64 * MIB, LEAST, &share), 0);
    assert_int_equal(share.least + share.extra, 64 * MIB);
    budget_give_back(&budget, &share);
    assert_int_equal(budget.least + budget.extra + share.least + share.extra, 0);
    assert_int_equal(budget_take(&budget, MIB, LEAST, &share), 0);
    assert_int_equal(share.least, MIB);
    assert_int_equal(share.extra, 0);
}

/* However much others want, there is the least for as many as the budget is made for, and not for one more. */
TEST(nobody_takes_the_least_of_others)
{
    struct budget budget;
    struct budget_share shares[256];
    struct budget_share another;

    budget_init(&budget, 768 * MIB);
    for (size_t i = 0; i < 256; i++) {
        assert_int_equal(budget_take(&budget, 64 * MIB, LEAST, &shares[i]), 0);
        assert_int_equal(shares[i].least, LEAST);
    }
    assert_true(budget.least + budget.extra <= (uint64_t)768 * MIB);
    assert_int_equal(budget_take(&budget, LEAST, LEAST, &another), -ENOBUFS);
    budget_give_back(&budget, &shares[0]);
    assert_int_equal(budget_take(&budget, LEAST, LEAST, &another), 0);
}

/* In whatever order: what was given once is given again. */
TEST(after_a_restart_each_has_what_it_had)
{
    struct budget before;
    struct budget after;
    struct budget_share shares[20];

    budget_init(&before, 96 * MIB);
    budget_init(&after, 96 * MIB);
    for (size_t i = 0; i < 20; i++)
        assert_int_equal(budget_take(&before, 64 * MIB, LEAST, &shares[i]), 0);
    for (size_t i = 20; i-- > 0;) {
        uint64_t had = shares[i].least + shares[i].extra;
        struct budget_share share = budget_take_again(&after, had, LEAST);
        assert_int_equal(share.least + share.extra, had);
    }
    budget_init(&after, 6 * MIB);
    for (size_t i = 0; i < 20; i++)
        assert_int_equal(budget_take_again(&after, 64 * MIB, LEAST).least, LEAST);
    assert_true(after.extra <= 2 * MIB);
}

TEST(what_is_read_counts)
{
    struct budget budget;
    struct budget_share share;

    budget_init(&budget, 12 * MIB);
    struct budget_share noted = budget_note(&budget, 64 * MIB);
    assert_int_equal(budget_take(&budget, 64 * MIB, LEAST, &share), 0);
    assert_int_equal(share.extra, 0);
    budget_give_back(&budget, &noted);
    assert_int_equal(budget_take(&budget, 64 * MIB, LEAST, &share), 0);
    assert_int_equal(share.extra, MIB);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_there_is_given),
        cmocka_unit_test(nobody_takes_the_least_of_others),
        cmocka_unit_test(after_a_restart_each_has_what_it_had),
        cmocka_unit_test(what_is_read_counts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
