/*
 * rate: token buckets by name: an address, an agent.
 *
 * Used on the loop's thread; takes the time as an argument. The table has a fixed number of buckets. A full table gives
 * up only buckets that have filled up again, which forgets nothing; when there is none, newcomers share one bucket, so
 * that making up names empties that one rather than anybody's own.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rate_options {
    uint32_t tokens; /* per period; 0: no limit */
    uint32_t period_ms;
    uint32_t burst; /* that a full bucket holds; 0: as many as `tokens` */
    uint32_t names_max;
};

struct rate;

struct rate_verdict {
    bool allowed;
    uint32_t retry_ms; /* when one more would be allowed */
    uint32_t left;     /* whole tokens */
};

_must_use_ int rate_new(const struct rate_options *options, struct rate **ret_rate, struct error *err);
void rate_free(struct rate *rate);

/* Take one token. `now_ns` never goes back. */
struct rate_verdict rate_take(struct rate *rate, const void *name, size_t length, uint64_t now_ns);

size_t rate_count(const struct rate *rate);
