/*
 * dial: a TCP connection to the first of several addresses that takes it (RFC 8305), on the airlock's loop.
 */
#pragma once

#include "airlock/address.h"

#include <uv.h>

enum { DIAL_ADDRESSES_MAX = 8 };

struct dial;

/* A connected socket that does not block, or the last error as -errno. The dial is gone then. */
typedef void dial_done(void *data, int fd);

/* `done` is called once, never from within this call. */
_must_use_ int dial_start(uv_loop_t *loop, const struct address *addresses, size_t count, uint16_t port,
                          dial_done *done, void *data, struct dial **ret_dial);
/* How much may be received and not read: before the connection is there, or its window never grows that far. */
void dial_set_receive_bytes(struct dial *dial, int bytes);
void dial_cancel(struct dial *dial);
