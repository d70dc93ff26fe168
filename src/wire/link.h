/*
 * link: messages over a SOCK_SEQPACKET socket, one frame per packet. The only part of wire that does I/O.
 */
#pragma once

#include "wire/wire.h"

/* Encode and send, with descriptors. 0 or -errno; -EAGAIN when the peer's buffer is full. */
_must_use_ int link_send(int socket, const struct wire_message *message, const int *fds, size_t fd_count);

/*
 * Receive and decode into `frame` (WIRE_FRAME_MAX bytes, which the message's views point into) and check that
 * `sender` may send it in `state`. Returns 1, 0 at the end of the connection, -EBADMSG for what is not permitted
 * (all descriptors closed), or another -errno.
 */
_must_use_ int link_receive(int socket, enum wire_sender sender, enum wire_state state, uint8_t *frame,
                            struct wire_message *ret_message, int *fds, size_t *ret_fd_count);
