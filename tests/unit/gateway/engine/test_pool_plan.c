#include "gateway/engine/pool_plan.h"
#include "test.h"

static const struct {
    const char *name;
    struct pool_plan plan;
    struct pool_plan_class classes[2];
    enum pool_what what;
    size_t class;
    uint64_t wait_ms;
} rows[] = {
    {"nothing is missing", {.now_ms = 100}, {{2, 2, 2, 0}}, POOL_NOTHING, 0, 0},
    {"one is missing", {.now_ms = 100}, {{2, 2, 1, 0}}, POOL_MAKE, 0, 0},
    {"one is being made", {.now_ms = 100, .making = 1}, {{9, 9, 1, 1}}, POOL_NOTHING, 0, 0},
    {"somebody waits", {.now_ms = 100, .waiting = 1}, {{2, 2, 1, 0}}, POOL_WAIT, 0, 2},
    {"it rests", {.now_ms = 100, .last_ms = 100}, {{2, 2, 1, 0}}, POOL_WAIT, 0, POOL_REST_QUIET_MS},
    {"it rests longer beside work",
     {.now_ms = 101, .last_ms = 100, .running = 1},
     {{2, 2, 1, 0}},
     POOL_WAIT,
     0,
     POOL_REST_MS - 1},
    {"it has rested", {.now_ms = 105, .last_ms = 100, .running = 1}, {{2, 2, 1, 0}}, POOL_MAKE, 0, 0},
    {"an exec has just started",
     {.now_ms = 149, .last_ms = 100, .running = 1, .is_lively = true},
     {{2, 2, 1, 0}},
     POOL_WAIT,
     0,
     2},
    {"execs start all the time",
     {.now_ms = 150, .last_ms = 100, .running = 1, .is_lively = true},
     {{2, 2, 1, 0}},
     POOL_MAKE,
     0,
     0},
    {"one has failed", {.now_ms = 100, .last_ms = 100, .failures = 1}, {{2, 2, 1, 0}}, POOL_WAIT, 0, 250},
    {"three have failed", {.now_ms = 100, .last_ms = 100, .failures = 3}, {{2, 2, 1, 0}}, POOL_WAIT, 0, 1000},
    {"all fail", {.now_ms = 100, .last_ms = 100, .failures = 999}, {{2, 2, 1, 0}}, POOL_WAIT, 0, 30000},
    {"too many are idle", {.now_ms = 100, .last_ms = 100}, {{0, 1, 1, 0}, {0, 1, 2, 0}}, POOL_END, 1, 0},
    {"the end of all", {.now_ms = 100, .is_draining = true}, {{2, 2, 1, 0}}, POOL_END, 0, 0},
    {"after the end of all", {.now_ms = 100, .is_draining = true}, {{2, 2, 0, 0}}, POOL_NOTHING, 0, 0},
    {"the poorer one", {.now_ms = 100}, {{10, 10, 9, 0}, {4, 4, 1, 0}}, POOL_MAKE, 1, 0},
    {"the poorer one first", {.now_ms = 100}, {{10, 10, 2, 0}, {4, 4, 3, 0}}, POOL_MAKE, 0, 0},
};

TEST(test_decisions)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct pool_decision decision = pool_decide(&rows[i].plan, rows[i].classes, 2);
        assert_row(rows[i].name, decision.what == rows[i].what);
        assert_row(rows[i].name, decision.class == rows[i].class);
        assert_row(rows[i].name, decision.wait_ms == rows[i].wait_ms);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_decisions)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
