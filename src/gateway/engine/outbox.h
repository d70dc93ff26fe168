/*
 * outbox: messages to one peer over SOCK_SEQPACKET, kept while its buffer is full. Used by both links. Capped: a peer
 * that reads nothing is not worth more.
 */
#pragma once

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

struct wire_message;
struct outbox_frame;

struct outbox {
    struct outbox_frame *first;
    struct outbox_frame *last;
    size_t bytes;
    size_t cap;
};

void outbox_init(struct outbox *outbox, size_t cap);
void outbox_release(struct outbox *outbox);

/*
 * Send, or keep it for later, with a descriptor (-1: none), of which a copy is kept. 0 when it is sent, 1 when it
 * waits, -ENOBUFS over the cap, or another -errno of the socket's.
 */
_must_use_ int outbox_send(struct outbox *outbox, int socket, const struct wire_message *message, int fd);

/* The same, but it waits in any case, until outbox_flush(). */
_must_use_ int outbox_keep(struct outbox *outbox, const struct wire_message *message, int fd);

/* Send what waits, at most `most` of it, and count: 0 or -errno; -EAGAIN when the peer's buffer is full. */
_must_use_ int outbox_flush(struct outbox *outbox, int socket, unsigned most, unsigned *ret_sent);
