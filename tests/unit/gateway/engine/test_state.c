#include "gateway/engine/state.h"
#include "test.h"

#define NO SANDBOX_STATES

/* Read off the design, not off the table: from each state, what each event leads to. */
static const struct {
    enum sandbox_state from;
    enum state_event event;
    enum sandbox_state to;
} rows[] = {
    {SANDBOX_CREATING, STATE_MADE, SANDBOX_READY},     {SANDBOX_CREATING, STATE_REFUSED, SANDBOX_FAILED},
    {SANDBOX_CREATING, STATE_ENDED, SANDBOX_STOPPING}, {SANDBOX_CREATING, STATE_VANISHED, SANDBOX_FAILED},
    {SANDBOX_READY, STATE_FROZEN, SANDBOX_PAUSED},     {SANDBOX_READY, STATE_HALTED, SANDBOX_STOPPED},
    {SANDBOX_READY, STATE_ENDED, SANDBOX_STOPPING},    {SANDBOX_READY, STATE_VANISHED, SANDBOX_GONE},
    {SANDBOX_PAUSED, STATE_THAWED, SANDBOX_READY},     {SANDBOX_PAUSED, STATE_ENDED, SANDBOX_STOPPING},
    {SANDBOX_PAUSED, STATE_VANISHED, SANDBOX_GONE},    {SANDBOX_STOPPED, STATE_RESTARTED, SANDBOX_READY},
    {SANDBOX_STOPPED, STATE_ENDED, SANDBOX_STOPPING},  {SANDBOX_STOPPED, STATE_VANISHED, SANDBOX_GONE},
    {SANDBOX_STOPPING, STATE_REFUSED, SANDBOX_GONE},   {SANDBOX_STOPPING, STATE_VANISHED, SANDBOX_GONE},
};

static enum sandbox_state expected(enum sandbox_state from, enum state_event event)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        if (rows[i].from == from && rows[i].event == event)
            return rows[i].to;
    }
    return NO;
}

TEST(test_every_cell)
{
    for (int from = 0; from < SANDBOX_STATES; from++) {
        for (int event = 0; event < STATE_EVENTS; event++) {
            enum sandbox_state to = expected((enum sandbox_state)from, (enum state_event)event);
            enum sandbox_state next = NO;
            int r = state_next((enum sandbox_state)from, (enum state_event)event, &next);
            assert_int_equal(r, to == NO ? -EINVAL : 0);
            assert_int_equal(next, to);
        }
    }
}

/* Everything that lives can be destroyed, and what has ended stays so. */
TEST(test_ends)
{
    for (int from = 0; from < SANDBOX_STATES; from++) {
        enum sandbox_state next;
        bool is_live = state_is_live((enum sandbox_state)from);
        assert_int_equal(state_next((enum sandbox_state)from, STATE_ENDED, &next) == 0, is_live);
        assert_true(sandbox_state_name((enum sandbox_state)from)[0] != '\0');
    }
    assert_string_equal(sandbox_state_name(SANDBOX_READY), "running");
    assert_string_equal(sandbox_reason_name(SANDBOX_OOM), "oom");
    assert_string_equal(sandbox_reason_name(SANDBOX_NO_REASON), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_cell), cmocka_unit_test(test_ends)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
