#include "test.h"
#include "wire/steps.h"
#include "wire/wire.h"

TEST(test_names)
{
    for (uint32_t a = 0; a < STEP_COUNT; a++) {
        assert_true(strlen(step_name(a)) > 0 && strlen(step_name(a)) <= 10); /* a column of --stats */
        assert_true(strlen(step_words(a)) > 0);
        for (uint32_t b = 0; b < a; b++) {
            assert_string_not_equal(step_name(a), step_name(b));
            assert_string_not_equal(step_words(a), step_words(b));
        }
    }
    assert_string_equal(step_name(STEP_REQUEST), "request");
    assert_string_equal(step_words(STEP_INIT), "starting init");
}

TEST(test_unknown)
{
    static const uint32_t unknown[] = {STEP_COUNT, STEP_COUNT + 1, INT32_MAX, UINT32_MAX};

    for (size_t i = 0; i < COUNT(unknown); i++) {
        assert_string_equal(step_name(unknown[i]), "unknown");
        assert_string_equal(step_words(unknown[i]), "doing something unknown");
    }
}

/* The messages that carry a duration per step have room for all of them. */
TEST(test_fit_the_wire)
{
    static const uint8_t durations[STEP_COUNT * 8];
    static uint8_t frame[WIRE_FRAME_MAX];
    struct wire_u64v steps_ns = {durations, STEP_COUNT};
    struct wire_message created = {.type = WIRE_CREATED, .created.steps_ns = steps_ns};
    struct wire_message setup = {.type = WIRE_SETUP, .setup.steps_ns = steps_ns};

    assert_true(wire_encode(&created, frame, sizeof frame) > 0);
    assert_true(wire_encode(&setup, frame, sizeof frame) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_names), cmocka_unit_test(test_unknown),
                                       cmocka_unit_test(test_fit_the_wire)};
    return cmocka_run_group_tests_name("wire/steps", tests, NULL, NULL);
}
