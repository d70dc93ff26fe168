#include "keeper/jobs.h"

#include "test.h"

enum { MANY = 20 };

static size_t take_all(struct jobs *jobs, struct job **taken)
{
    size_t count = 0;

    for (struct job *job; (job = jobs_take(jobs)) != NULL;)
        taken[count++] = job;
    return count;
}

/* However many are asked for, only so many run; the rest starts in the order in which it came. */
TEST(test_bounded)
{
    struct jobs jobs = {0};
    struct job creates[MANY] = {0};
    struct job *taken[MANY];

    for (size_t i = 0; i < MANY; i++)
        jobs_add(&jobs, &creates[i]);
    size_t running = take_all(&jobs, taken);
    assert_in_range(running, 1, MANY / 2);
    assert_int_equal(jobs_count(&jobs, JOB_CREATE), MANY);
    for (size_t i = 0; i < running; i++)
        assert_ptr_equal(taken[i], &creates[i]);
    for (size_t i = running; i < MANY; i++) {
        jobs_remove(&jobs, &creates[i - running]);
        assert_ptr_equal(jobs_take(&jobs), &creates[i]);
        assert_null(jobs_take(&jobs));
    }
    assert_int_equal(jobs_count(&jobs, JOB_CREATE), running);
}

/* What there is to clean up does not keep a creation waiting. */
TEST(test_lanes)
{
    struct jobs jobs = {0};
    struct job reclaims[MANY] = {0};
    struct job create = {.kind = JOB_CREATE};
    struct job *taken[MANY];

    for (size_t i = 0; i < MANY; i++) {
        reclaims[i].kind = JOB_RECLAIM;
        jobs_add(&jobs, &reclaims[i]);
    }
    assert_in_range(take_all(&jobs, taken), 1, MANY / 2);
    jobs_add(&jobs, &create);
    assert_ptr_equal(jobs_take(&jobs), &create);
    assert_false(jobs_are_stuck(&jobs));
}

TEST(test_put_back)
{
    struct jobs jobs = {0};
    struct job first = {.kind = JOB_DISCARD};
    struct job second = {.kind = JOB_DISCARD};

    assert_false(jobs_are_stuck(&jobs));
    jobs_add(&jobs, &first);
    jobs_add(&jobs, &second);
    assert_ptr_equal(jobs_take(&jobs), &first);
    jobs_put_back(&jobs, &first);
    assert_true(jobs_are_stuck(&jobs));
    assert_ptr_equal(jobs_take(&jobs), &first);
    assert_ptr_equal(jobs_take(&jobs), &second);
    jobs_put_back(&jobs, &second);
    assert_false(jobs_are_stuck(&jobs));
    jobs_remove(&jobs, &second);
    jobs_remove(&jobs, &first);
    assert_int_equal(jobs_count(&jobs, JOB_DISCARD), 0);
}

/* Also from the middle and the ends, and while they are walked through. */
TEST(test_walk)
{
    struct jobs jobs = {0};
    struct job creates[MANY] = {0};
    struct job *next = NULL;
    size_t count = 0;

    for (size_t i = 0; i < MANY; i++)
        jobs_add(&jobs, &creates[i]);
    assert_non_null(jobs_take(&jobs));
    assert_non_null(jobs_take(&jobs));
    jobs_remove(&jobs, &creates[10]);
    jobs_remove(&jobs, &creates[MANY - 1]);
    jobs_remove(&jobs, &creates[0]);
    for (struct job *job = jobs_next(&jobs, JOB_CREATE, NULL); job != NULL; job = next) {
        next = jobs_next(&jobs, JOB_CREATE, job);
        jobs_remove(&jobs, job);
        count++;
    }
    assert_int_equal(count, MANY - 3);
    assert_int_equal(jobs_count(&jobs, JOB_CREATE), 0);
    jobs_add(&jobs, &creates[0]);
    assert_ptr_equal(jobs_take(&jobs), &creates[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bounded), cmocka_unit_test(test_lanes),
                                       cmocka_unit_test(test_put_back), cmocka_unit_test(test_walk)};

    return cmocka_run_group_tests_name("keeper/jobs", tests, NULL, NULL);
}
