/*
 * many: the two measurements of bench-many. Each prints one JSON object.
 */
#pragma once

#include "base/error.h"

#include <stddef.h>

struct many_options {
    const char *init;  /* hutch-init */
    const char *state; /* folder for layers */
};

/*
 * Sandboxes per second: create, run `true`, destroy; against bare clone with all seven namespaces, id maps, exec of
 * `true` and wait. `slices` of `slice_ms` each, alternating, with 1 and with 2 workers.
 */
_must_use_ int rate_measure(const struct many_options *options, unsigned slices, unsigned slice_ms, struct error *err);

/*
 * With 0 and then each of `levels` idle sandboxes alive: memory and descriptors of one, and the time that one more
 * takes, `rounds` times.
 */
_must_use_ int live_measure(const struct many_options *options, unsigned rounds, const size_t *levels,
                            size_t level_count, struct error *err);
