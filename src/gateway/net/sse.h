/*
 * sse: server-sent events (WHATWG HTML, 9.2) as the body of an answer in pieces.
 */
#pragma once

#include "base/buf.h"
#include "gateway/net/request.h"

/* Start the answer: 200, text/event-stream. */
void sse_start(struct request *request);

/*
 * An event. `event` and `id` may be NULL. Each line of `data` becomes one `data:` line, whether it ends in CR, LF or
 * both; a line end at the very end starts no further line. As request_write(), or -EINVAL for a line end in `event` or
 * `id`, -ENOMEM.
 */
_must_use_ int sse_event(struct request *request, const char *event, const char *id, const void *data, size_t length);

/* A line that means nothing: keeps the connection busy. */
_must_use_ int sse_heartbeat(struct request *request);

/* The bytes of an event, appended. Pure. 0, -EINVAL, -ENOBUFS, -ENOMEM. */
_must_use_ int sse_format(struct buf *buf, const char *event, const char *id, const void *data, size_t length);
