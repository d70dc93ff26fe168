/*
 * guest_link: the gateway's end of the guest link of one sandbox: reads frames, gives them to guest.h, sends what is to
 * be said. One descriptor. The other end is hostile: see guest.h.
 */
#pragma once

#include "gateway/engine/guest.h"
#include "gateway/engine/outbox.h"

#include <uv.h>

struct guest_link {
    uv_poll_t poll;
    int fd;
    bool is_open;    /* it is listened to */
    bool has_handle; /* and has still to be closed */
    bool is_watching_room;
    bool is_held;
    uint64_t full_since_ms; /* of the loop; 0: it takes what is sent */
    struct guest guest;
    struct outbox outbox;
    uint8_t *frame; /* WIRE_FRAME_MAX bytes, the engine's */
    void *owner;
    void (*heard)(void *owner, const struct guest_event *event);
    void (*heard_all)(void *owner); /* that was there, or enough for once */
    void (*drained)(void *owner);   /* nothing waits to be sent any more */
    /* -EBADMSG: it said what it may not; 0: it has gone. It is not listened to any more. */
    void (*ended)(void *owner, int status);
};

/* The caller sets frame, owner and the callbacks. `fd` becomes the link's. */
_must_use_ int guest_link_open(struct guest_link *link, uv_loop_t *loop, int fd, uint32_t gateway_start);

/* Hear nothing for now, or again. What is said goes out all the same. */
void guest_link_hold(struct guest_link *link, bool is_held);

/* Neither listen nor speak any more; the descriptor stays open. */
void guest_link_stop(struct guest_link *link);

/* All that is there to be heard, at once: the sandbox has ended. */
void guest_link_drain(struct guest_link *link);

/* `closed` gets the poll handle, whose data the caller has set. Only when has_handle. */
void guest_link_close(struct guest_link *link, uv_close_cb closed);

/* 0; what can't be sent any more is told by `ended`. -ENOBUFS when it reads nothing. */
_must_use_ int guest_link_say(struct guest_link *link, const struct wire_message *message);
