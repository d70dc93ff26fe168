/*
 * flow: bytes from one socket to another, one way, as fast as both allow and no faster.
 *
 * Does I/O on descriptors that do not block, and nothing else: who waits for them, and how, is the caller's. What could
 * not be written yet is kept, at most FLOW_CAP; until it is gone nothing more is read. Once a flow has shown to be a
 * large one its bytes go through a pipe and are not copied any more.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FLOW_CAP = 65536, FLOW_FIRST = 64, FLOW_SHARE = 1 << 20 };

struct flow {
    uint64_t bytes;   /* that were written */
    bool has_end;     /* the source has no more */
    bool has_ended;   /* and the target was told */
    bool is_watching; /* see flow_watch() */
    uint8_t first[FLOW_FIRST];
    size_t first_length;

    /* Its own. */
    uint8_t *kept;
    size_t kept_start;
    size_t kept_length;
    int pipe[2];
    size_t piped;
    bool no_pipe;
};

void flow_init(struct flow *flow);
void flow_release(struct flow *flow);

/* Keep the first bytes that come from now on. */
void flow_watch(struct flow *flow);

/* Is something kept that waits for the target? */
bool flow_is_waiting(const struct flow *flow);

/* Write these bytes, or keep them. -ENOBUFS beyond the cap, -ENOMEM, or the errno of the target. */
_must_use_ int flow_push(struct flow *flow, int to, const uint8_t *data, size_t length);

/* Write what is kept; with the source's end, and nothing kept, tell the target. 0 or the errno of the target. */
_must_use_ int flow_flush(struct flow *flow, int to);

/* Move what there is, up to FLOW_SHARE, which leaves others their turn. 0, or the errno of either side. */
_must_use_ int flow_pump(struct flow *flow, int from, int to);
