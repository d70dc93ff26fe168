/*
 * pulse: a call that comes again and again, for streams that would fall silent.
 *
 * Made on the loop's thread; stopped by its owner, and freed by the loop after that.
 */
#pragma once

#include <stdint.h>
#include <uv.h>

struct pulse;

enum { PULSE_MS = 15000 };

/* NULL: no memory. */
struct pulse *pulse_start(uv_loop_t *loop, uint64_t ms, void (*beat)(void *data), void *data);

/* NULL is legal. */
void pulse_stop(struct pulse *pulse);
