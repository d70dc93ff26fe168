/*
 * buf: a growable byte buffer with a cap given when it is made. Nothing grows because a peer wants it to.
 *
 * The owner calls buf_release(). Appending beyond the cap is -ENOBUFS and changes nothing.
 */
#pragma once

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

struct buf {
    uint8_t *data;
    size_t length;
    size_t room;
    size_t cap;
};

static inline struct buf buf_init(size_t cap)
{
    return (struct buf){.cap = cap};
}

void buf_release(struct buf *buf);

/* -ENOBUFS over the cap, -ENOMEM. */
_must_use_ int buf_append(struct buf *buf, const void *data, size_t length);
_must_use_ int buf_printf(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * Append a JSON string, quotes included. Bytes that are not UTF-8 become U+FFFD; control characters, quotes and
 * backslashes are escaped.
 */
_must_use_ int buf_append_json(struct buf *buf, const void *text, size_t length);
