/*
 * outbox: what the client is told. What matters is kept for a client that does not read at the moment, up to a cap;
 * anything else is not waited for.
 */
#pragma once

#include "wire/wire.h"

#include <uv.h>

enum outbox_class {
    OUTBOX_NOTE,   /* not kept */
    OUTBOX_RECORD, /* kept, up to a share for each sandbox */
    OUTBOX_ANSWER, /* kept: who asks looks for room first */
};

struct letter;
typedef void outbox_emptied(void *data);

struct outbox {
    int fd; /* not its own */
    uv_poll_t poll;
    bool is_watching;
    struct letter *first;
    struct letter *last; /* when there is a first */
    size_t count;
    size_t answers;
    outbox_emptied *emptied;
    void *data;
};

/* `emptied` is called when what was kept has gone. */
_must_use_ int outbox_init(struct outbox *outbox, uv_loop_t *loop, int fd, outbox_emptied *emptied, void *data);

/* Sent or kept: 0. Otherwise -errno: -EAGAIN and -ENOBUFS when the client does not read, others when it is gone. */
_must_use_ int outbox_send(struct outbox *outbox, uint64_t sandbox, const struct wire_message *message,
                           enum outbox_class class);

/* Is there room for one more answer? */
bool outbox_has_room(const struct outbox *outbox);
