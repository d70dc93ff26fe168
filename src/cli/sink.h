/*
 * sink: where one output stream of the command goes: a descriptor of the caller's, or memory.
 *
 * A descriptor is never made non-blocking (others share it) and never written to in a way that could block the loop:
 * what it does not take at once is kept, at most WIRE_WINDOW bytes, because more is not sent before it is acknowledged.
 */
#pragma once

#include "base/buf.h"

#include <stdbool.h>

struct sink {
    int fd;            /* -1: collected in memory */
    bool is_file;      /* takes everything at once */
    bool broken;       /* the reader has gone, or nothing can be written any more */
    int error;         /* why, when it was not the reader */
    bool broken_told;  /* and the command was told */
    uint64_t received; /* offset behind the last byte that came */
    uint64_t done;     /* offset behind the last byte that was written or collected */
    uint64_t acked;
    struct buf waiting; /* [done, received) of a descriptor */
    struct buf collected;
};

void sink_init(struct sink *sink, int fd, size_t collect_cap);
void sink_release(struct sink *sink);

/* Take bytes at `offset`, which must be where the last ones ended. -EBADMSG when it is not, -ENOBUFS when it
 * is more than was acknowledged room for, -ENOMEM. */
_must_use_ int sink_take(struct sink *sink, uint64_t offset, const void *data, size_t length);

/* Write what the descriptor takes now. */
void sink_flush(struct sink *sink);

static inline bool sink_is_waiting(const struct sink *sink)
{
    return sink->done < sink->received && !sink->broken;
}

/* Is it time to acknowledge? */
bool sink_ack_due(const struct sink *sink);
