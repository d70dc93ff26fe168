/*
 * meter: how long the loop was busy without looking for new events.
 *
 * One round of a libuv loop handles everything that was ready; until it is over nobody else is heard. The meter takes
 * the time of each round without the time it slept.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct meter {
    uv_prepare_t prepare;
    uint64_t round_start_ns;
    uint64_t idle_before_ns;
    uint64_t longest_ns; /* since the start */
    uint64_t recent_ns;  /* since meter_take_recent() */
    uint64_t rounds;
    uint64_t busy_ns; /* of all rounds together */
    bool has_start;
};

/* Before the loop runs for the first time: it has to count its sleep. */
_must_use_ int meter_start(struct meter *meter, uv_loop_t *loop, struct error *err);

/* The handle is closed by the loop; `meter` must live until then. */
void meter_stop(struct meter *meter);

/* The longest round since the last time this was asked. */
uint64_t meter_take_recent(struct meter *meter);
