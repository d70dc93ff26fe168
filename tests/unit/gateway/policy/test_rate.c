#include "gateway/policy/rate.h"
#include "test.h"

#include <stdio.h>

static const uint64_t MS = 1000000;
static const uint64_t START = 5000000000;

static struct rate *make(uint32_t tokens, uint32_t period_ms, uint32_t burst, uint32_t names)
{
    struct rate *rate = NULL;
    struct error err;

    assert_int_equal(rate_new(&(struct rate_options){tokens, period_ms, burst, names}, &rate, &err), 0);
    return rate;
}

static struct rate_verdict take(struct rate *rate, const char *name, uint64_t now_ns)
{
    return rate_take(rate, name, strlen(name), now_ns);
}

static unsigned take_all(struct rate *rate, const char *name, uint64_t now_ns)
{
    unsigned count = 0;

    while (take(rate, name, now_ns).allowed)
        count++;
    return count;
}

TEST(a_burst_then_the_rate)
{
    struct rate *rate = make(100, 1000, 200, 10);

    assert_int_equal(take(rate, "a", START).left, 199);
    assert_int_equal(take_all(rate, "a", START), 199);
    assert_int_equal(take(rate, "a", START).retry_ms, 10);
    assert_false(take(rate, "a", START + 9 * MS).allowed);
    assert_true(take(rate, "a", START + 10 * MS).allowed);
    assert_int_equal(take_all(rate, "a", START + 1010 * MS), 100);
    assert_int_equal(take_all(rate, "b", START + 1010 * MS), 200);
    assert_int_equal(take_all(rate, "a", START + 90000 * MS), 200);
    rate_free(rate);
}

TEST(per_minute)
{
    struct rate *rate = make(60, 60000, 0, 10);

    assert_int_equal(take_all(rate, "a", START), 60);
    assert_int_equal(take(rate, "a", START).retry_ms, 1000);
    assert_int_equal(take_all(rate, "a", START + 3500 * MS), 3);
    rate_free(rate);
}

TEST(no_limit)
{
    struct rate *rate = make(0, 0, 0, 10);

    for (int i = 0; i < 10000; i++)
        assert_true(take(rate, "a", START).allowed);
    rate_free(rate);
}

/* Making up names neither gives a busy one its bucket back nor gets more than one bucket's worth. */
TEST(a_full_table_forgets_nobody)
{
    enum { NAMES = 100 };
    struct rate *rate = make(10, 1000, 20, NAMES);
    char name[32];
    unsigned allowed = 0;

    assert_int_equal(take_all(rate, "victim", START), 20);
    for (int i = 0; i < NAMES * 50; i++) {
        (void)snprintf(name, sizeof name, "made-up-%d", i);
        allowed += take(rate, name, START).allowed ? 1 : 0;
    }
    assert_int_equal(rate_count(rate), NAMES);
    assert_int_equal(allowed, NAMES - 1 + 20);
    assert_false(take(rate, "victim", START).allowed);
    assert_false(take(rate, "victim", START + 99 * MS).allowed);
    assert_true(take(rate, "victim", START + 100 * MS).allowed);
    rate_free(rate);
}

TEST(a_full_table_makes_room_when_buckets_have_filled_up)
{
    enum { NAMES = 100 };
    struct rate *rate = make(10, 1000, 20, NAMES);
    char name[32];

    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < NAMES; i++) {
            (void)snprintf(name, sizeof name, "%d-%d", round, i);
            assert_int_equal(take_all(rate, name, START + (uint64_t)round * 3000 * MS), 20);
        }
        assert_int_equal(rate_count(rate), NAMES);
    }
    rate_free(rate);
}

TEST(names_are_bytes)
{
    struct rate *rate = make(1, 1000, 1, 10);

    assert_true(rate_take(rate, "a\0b", 3, START).allowed);
    assert_true(rate_take(rate, "a\0c", 3, START).allowed);
    assert_true(rate_take(rate, "a", 1, START).allowed);
    assert_true(rate_take(rate, "", 0, START).allowed);
    assert_false(rate_take(rate, "a\0b", 3, START).allowed);
    rate_free(rate);
}

TEST(what_makes_no_sense)
{
    struct rate *rate;
    struct error err;

    assert_int_equal(rate_new(&(struct rate_options){1, 0, 1, 1}, &rate, &err), -EINVAL);
    assert_int_equal(rate_new(&(struct rate_options){1, 1, 1, 0}, &rate, &err), -EINVAL);
    rate_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_burst_then_the_rate),
        cmocka_unit_test(per_minute),
        cmocka_unit_test(no_limit),
        cmocka_unit_test(a_full_table_forgets_nobody),
        cmocka_unit_test(a_full_table_makes_room_when_buckets_have_filled_up),
        cmocka_unit_test(names_are_bytes),
        cmocka_unit_test(what_makes_no_sense),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
