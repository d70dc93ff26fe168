/*
 * head: the bytes in front of an answer's body. Pure.
 */
#pragma once

#include "base/buf.h"
#include "gateway/net/http.h"

#include <stdint.h>

enum head_framing {
    HEAD_NO_BODY,     /* and none could be: 204, 304 */
    HEAD_LENGTH,      /* Content-Length */
    HEAD_CHUNKED,     /* HTTP/1.1 */
    HEAD_UNTIL_CLOSE, /* HTTP/1.0 */
};

struct head {
    unsigned status;
    unsigned minor_version; /* the client's */
    const char *request_id;
    const char *date;
    const char *type;             /* NULL: none */
    const struct header *headers; /* a value of NULL leaves out what would be there */
    size_t header_count;
    enum head_framing framing;
    uint64_t length;
    bool keep_alive;
};

enum { HEAD_DATE_SIZE = 40 };

/* Append it, the empty line included. 0, -ENOBUFS, -ENOMEM. */
_must_use_ int head_write(struct buf *buf, const struct head *head);

/* As RFC 9110, 5.6.7 wants it. */
void head_date(int64_t unix_seconds, char date[HEAD_DATE_SIZE]);

/* Headers that a handler may not set: they say where the answer ends. */
bool head_is_reserved(const char *name);
