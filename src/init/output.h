/*
 * output: one output stream of a command: what was read from its pipe and is not yet acknowledged.
 *
 * INSIDE THE SANDBOX. Bytes have offsets from the start of the stream. [acked, stored) is kept in a ring of
 * WIRE_WINDOW bytes, so the client can ask for it again; beyond `cap` bytes are read, counted and dropped. When the
 * ring is full nothing is read and the command waits, as with any pipe whose reader is slow.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct output {
    int fd;           /* the pipe, -1 once it has ended or the reader has gone */
    uint32_t watched; /* by the event loop: for which events */
    uint8_t *ring;    /* made with the first byte */
    uint64_t cap;     /* 0: none */
    uint64_t acked;
    uint64_t sent;
    uint64_t resumed; /* how far it had been sent when a new client went back: it may have got that, too */
    uint64_t stored;
    uint64_t total;
};

void output_init(struct output *output, int fd, uint64_t cap);
void output_release(struct output *output);

/* Can bytes be read now? */
bool output_has_room(const struct output *output);

/* Read once. 1 when something came, 0 at the end (the pipe is closed then), -EAGAIN, or -ENOMEM. */
_must_use_ int output_read(struct output *output);

/* The next bytes to send, at most `most`, without a break in memory. */
size_t output_next(const struct output *output, size_t most, const uint8_t **ret_data);
static inline uint64_t output_unsent(const struct output *output)
{
    return output->stored - output->sent;
}

/* -EINVAL for an offset that was never sent. */
_must_use_ int output_ack(struct output *output, uint64_t offset);

/* Send again from there, or from the first byte that is left. -EINVAL for an offset that was never stored. */
_must_use_ int output_resume(struct output *output, uint64_t offset);
