#include "gateway/net/meter.h"
#include "test.h"

#include <unistd.h>

enum { NAP_US = 60000, NAP_NS = NAP_US * 1000 };

static void block(uv_timer_t *timer)
{
    (void)timer;
    (void)usleep(NAP_US);
}

static void nothing(uv_timer_t *timer)
{
    (void)timer;
}

static void run(uv_loop_t *loop, uv_timer_t *timer, uv_timer_cb callback, uint64_t delay_ms)
{
    assert_int_equal(uv_timer_start(timer, callback, delay_ms, 0), 0);
    assert_int_equal(uv_run(loop, UV_RUN_DEFAULT), 0);
    /* The round ends with the next one. */
    assert_int_equal(uv_timer_start(timer, nothing, 1, 0), 0);
    assert_int_equal(uv_run(loop, UV_RUN_DEFAULT), 0);
}

TEST(being_busy_counts_and_sleeping_does_not)
{
    uv_loop_t loop;
    uv_timer_t timer;
    struct meter meter;
    struct error err;

    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(meter_start(&meter, &loop, &err), 0);
    assert_int_equal(uv_timer_init(&loop, &timer), 0);
    run(&loop, &timer, nothing, 300);
    run(&loop, &timer, nothing, 1);
    uint64_t asleep = meter_take_recent(&meter);
    assert_true(asleep < (uint64_t)300 * 1000000);
    run(&loop, &timer, block, 1);
    assert_true(meter.longest_ns >= NAP_NS);
    assert_true(meter_take_recent(&meter) >= NAP_NS);
    assert_int_equal(meter_take_recent(&meter), 0);
    assert_true(meter.longest_ns >= NAP_NS && meter.busy_ns >= NAP_NS && meter.rounds > 3);
    meter_stop(&meter);
    uv_close((uv_handle_t *)&timer, NULL);
    assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&loop), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(being_busy_counts_and_sleeping_does_not)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
