/*
 * ring: the output of an exec that is kept: the newest bytes of both streams, in the order in which they came.
 *
 * Pure. `seq` counts the bytes of both streams. The bytes lie in one ring that grows up to its cap; runs say which
 * stream they are of. Many short runs are bounded too: beyond RING_RUNS the oldest go, as far as they are recorded.
 */
#pragma once

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

enum { RING_STREAMS = 2, RING_RUNS = 16384 };

struct ring_run {
    uint64_t seq;
    uint64_t offset : 63; /* in its stream */
    uint64_t stream : 1;
};

struct ring {
    uint8_t *data;
    size_t room;
    size_t cap;
    uint64_t base;                  /* which seq lies at data[0] */
    uint64_t first;                 /* seq of the oldest byte */
    uint64_t next;                  /* seq after the newest */
    uint64_t offsets[RING_STREAMS]; /* of what comes next in each stream */
    struct ring_run *runs;          /* a ring as well */
    size_t run_room;
    size_t run_first;
    size_t run_count;
};

struct ring_piece {
    uint64_t seq;
    uint64_t offset;
    size_t stream;
    const uint8_t *data; /* without a break in memory, until the ring is next changed */
    size_t length;
};

void ring_init(struct ring *ring, size_t cap);
void ring_release(struct ring *ring);

/* Go on where an earlier one stopped; only when it is empty. */
void ring_start_at(struct ring *ring, uint64_t seq, const uint64_t offsets[RING_STREAMS]);

/*
 * The oldest bytes make room, but not those from `pinned` on. -ENOBUFS when that is not enough, -ENOMEM; then nothing
 * has changed.
 */
_must_use_ int ring_append(struct ring *ring, size_t stream, const uint8_t *data, size_t length, uint64_t pinned);

/* So many bytes of a stream are lost: what was there goes, and the next comes after a gap. */
void ring_skip(struct ring *ring, size_t stream, uint64_t length);

/* From now on the bytes stay where they are in memory for as long as they are kept. -ENOMEM. */
_must_use_ int ring_settle(struct ring *ring);

/* What lies from `seq` on, below `until`: 1, or 0 when there is nothing. */
_must_use_ int ring_read(const struct ring *ring, uint64_t seq, uint64_t until, struct ring_piece *ret_piece);

/* Memory it takes. */
size_t ring_size(const struct ring *ring);
