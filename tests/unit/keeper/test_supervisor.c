#include "keeper/supervisor.h"
#include "test.h"

#define MS UINT64_C(1000000)

/* Each ends as soon as it was ready. */
TEST(test_backoff)
{
    static const uint64_t pauses[] = {100, 200, 400, 800, 1600, 3200, 6400, 10000, 10000};
    struct supervisor supervisor = SUPERVISOR_EMPTY;
    uint64_t now = 5 * MS;

    for (size_t i = 0; i < COUNT(pauses); i++) {
        supervisor_ready(&supervisor, now);
        (void)supervisor_lost(&supervisor, false, now + 59999 * MS);
        now += 59999 * MS;
        assert_int_equal(supervisor.start_ns - now, pauses[i] * MS);
        assert_int_equal(supervisor.ready_ns, 0);
    }
    assert_int_equal(supervisor.tries, 0);
    supervisor_ready(&supervisor, now);
    (void)supervisor_lost(&supervisor, false, now + 60000 * MS);
    assert_int_equal(supervisor.start_ns - now, (60000 + 100) * MS);
}

TEST(test_tries)
{
    struct supervisor supervisor = SUPERVISOR_EMPTY;

    for (unsigned i = 1; i <= 3; i++) {
        (void)supervisor_lost(&supervisor, false, 1);
        assert_int_equal(supervisor.tries, i);
        assert_false(supervisor.was_ready);
    }
    supervisor_ready(&supervisor, 1);
    assert_int_equal(supervisor.tries, 0);
    assert_true(supervisor.was_ready);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_backoff), cmocka_unit_test(test_tries)};

    return cmocka_run_group_tests_name("keeper/supervisor", tests, NULL, NULL);
}
