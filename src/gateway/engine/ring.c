#include "gateway/engine/ring.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM_FIRST = 256, RUNS_FIRST = 4 };

void ring_init(struct ring *ring, size_t cap)
{
    *ring = (struct ring){.cap = cap};
}

void ring_release(struct ring *ring)
{
    free(ring->data);
    free(ring->runs);
    *ring = (struct ring){0};
}

void ring_start_at(struct ring *ring, uint64_t seq, const uint64_t offsets[RING_STREAMS])
{
    ring->base = seq;
    ring->first = seq;
    ring->next = seq;
    memcpy(ring->offsets, offsets, sizeof ring->offsets);
}

static struct ring_run *run_at(const struct ring *ring, size_t index)
{
    return &ring->runs[(ring->run_first + index) % ring->run_room];
}

static uint64_t run_end(const struct ring *ring, size_t index)
{
    return index + 1 < ring->run_count ? run_at(ring, index + 1)->seq : ring->next;
}

static void forget_runs(struct ring *ring)
{
    while (ring->run_count > 0 && run_end(ring, 0) <= ring->first) {
        ring->run_first = (ring->run_first + 1) % ring->run_room;
        ring->run_count--;
    }
}

/* Where the bytes at `seq` lie. */
static size_t place_of(const struct ring *ring, uint64_t seq)
{
    return ring->room == 0 ? 0 : (size_t)((seq - ring->base) % ring->room);
}

static void copy_out(const struct ring *ring, uint64_t seq, uint8_t *to, size_t length)
{
    size_t at = place_of(ring, seq);
    size_t part = length < ring->room - at ? length : ring->room - at;

    memcpy(to, ring->data + at, part);
    memcpy(to + part, ring->data, length - part);
}

static int grow(struct ring *ring, size_t wanted)
{
    size_t room = ring->room > 0 ? ring->room : ROOM_FIRST;

    while (room < wanted)
        room *= 2;
    room = room < ring->cap ? room : ring->cap;
    uint8_t *data = malloc(room);
    if (data == NULL)
        return -ENOMEM;
    if (ring->next > ring->first)
        copy_out(ring, ring->first, data, (size_t)(ring->next - ring->first));
    free(ring->data);
    ring->data = data;
    ring->room = room;
    ring->base = ring->first;
    return 0;
}

int ring_settle(struct ring *ring)
{
    return ring->room < ring->cap ? grow(ring, ring->cap) : 0;
}

static int grow_runs(struct ring *ring)
{
    size_t room = ring->run_room > 0 ? ring->run_room * 2 : RUNS_FIRST;
    struct ring_run *runs = calloc(room, sizeof *runs);

    if (runs == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < ring->run_count; i++)
        runs[i] = *run_at(ring, i);
    free(ring->runs);
    ring->runs = runs;
    ring->run_room = room;
    ring->run_first = 0;
    return 0;
}

/* Room for one more run: an old one goes, when it may. */
static int make_run(struct ring *ring, uint64_t pinned)
{
    if (ring->run_count >= RING_RUNS && run_end(ring, 0) <= pinned) {
        ring->first = run_end(ring, 0);
        forget_runs(ring);
    }
    return ring->run_count == ring->run_room ? grow_runs(ring) : 0;
}

static void store(struct ring *ring, const uint8_t *data, size_t length)
{
    size_t at = place_of(ring, ring->next);
    size_t part = length < ring->room - at ? length : ring->room - at;

    memcpy(ring->data + at, data, part);
    memcpy(ring->data, data + part, length - part);
    ring->next += length;
}

int ring_append(struct ring *ring, size_t stream, const uint8_t *data, size_t length, uint64_t pinned)
{
    if (length == 0)
        return 0;
    uint64_t kept = ring->next - ring->first;
    uint64_t excess = kept + length > ring->cap ? kept + length - ring->cap : 0;
    if (length > ring->cap || (excess > 0 && ring->first + excess > pinned))
        return -ENOBUFS;
    bool continues = ring->run_count > 0 && run_at(ring, ring->run_count - 1)->stream == stream;
    int r = continues ? 0 : make_run(ring, pinned);
    if (r == 0 && kept - excess + length > ring->room)
        r = grow(ring, (size_t)(kept - excess + length));
    if (r < 0)
        return r;
    ring->first = ring->first < ring->next - kept + excess ? ring->next - kept + excess : ring->first;
    if (!continues) {
        *run_at(ring, ring->run_count) = (struct ring_run){
            .seq = ring->next, .offset = ring->offsets[stream] & (UINT64_MAX >> 1), .stream = stream & 1};
        ring->run_count++;
    }
    store(ring, data, length);
    ring->offsets[stream] += length;
    forget_runs(ring);
    return 0;
}

void ring_skip(struct ring *ring, size_t stream, uint64_t length)
{
    ring->next += length;
    ring->first = ring->next;
    ring->offsets[stream] += length;
    ring->run_count = 0;
}

/* The last run that starts at or before `seq`. */
static size_t find_run(const struct ring *ring, uint64_t seq)
{
    size_t low = 0;
    size_t high = ring->run_count;

    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (run_at(ring, middle)->seq <= seq)
            low = middle;
        else
            high = middle;
    }
    return low;
}

int ring_read(const struct ring *ring, uint64_t seq, uint64_t until, struct ring_piece *ret_piece)
{
    seq = seq > ring->first ? seq : ring->first;
    until = until < ring->next ? until : ring->next;
    if (seq >= until)
        return 0;
    size_t index = find_run(ring, seq);
    const struct ring_run *run = run_at(ring, index);
    uint64_t end = run_end(ring, index) < until ? run_end(ring, index) : until;
    size_t at = place_of(ring, seq);
    size_t length = (size_t)(end - seq);
    *ret_piece = (struct ring_piece){.seq = seq,
                                     .offset = run->offset + (seq - run->seq),
                                     .stream = run->stream,
                                     .data = ring->data + at,
                                     .length = length < ring->room - at ? length : ring->room - at};
    return 1;
}

size_t ring_size(const struct ring *ring)
{
    return ring->room + ring->run_room * sizeof *ring->runs;
}
