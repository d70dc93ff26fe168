/*
 * keeper_link: the gateway's end of the conversation with the keeper: what is asked, how much of it at once, and what
 * comes back. The keeper ends a client that does not read its answers, so no more is asked than fits its buffer.
 */
#pragma once

#include "gateway/engine/outbox.h"
#include "wire/wire.h"

#include <uv.h>

enum { KEEPER_LINK_AT_ONCE = 64 }; /* requests without an answer */

struct keeper_link {
    uv_poll_t poll;
    int fd;
    bool is_open;
    bool is_watching_room;
    unsigned in_flight;
    struct outbox outbox;
    uint8_t *frame; /* WIRE_FRAME_MAX bytes, the engine's */
    void *owner;
    /* A message; the descriptors are the receiver's. */
    void (*heard)(void *owner, const struct wire_message *message, int *fds, size_t fd_count);
    /* The keeper has gone, or said what it may not. The link is closed. */
    void (*lost)(void *owner);
};

/* The caller sets frame, owner, heard and lost. `fd` becomes the link's. */
_must_use_ int keeper_link_open(struct keeper_link *link, uv_loop_t *loop, int fd);

/* `closed` gets the poll handle, whose data the caller has set. */
void keeper_link_close(struct keeper_link *link, uv_close_cb closed);

/* Ask, now or when there is room, with a descriptor or -1. 0 or -errno. */
_must_use_ int keeper_link_ask(struct keeper_link *link, const struct wire_message *message, int fd);

/* Something that was asked will not be answered any more, or was. */
void keeper_link_answered(struct keeper_link *link);
