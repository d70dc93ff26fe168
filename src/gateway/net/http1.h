/*
 * http1: the requests of one HTTP/1 connection: bytes in, events out.
 *
 * Pure: no I/O, no clock. Used by connection.c, by tests and by the fuzz harness as it is. Lines are checked by line.h,
 * then llhttp (strict) parses them; what either refuses, or what could be understood in two ways, is HTTP1_BAD with
 * the status to answer, and nothing more is taken from that connection.
 *
 * One request at a time: after HTTP1_END no byte is taken until http1_reset().
 */
#pragma once

#include "base/buf.h"
#include "gateway/net/http.h"
#include "gateway/net/line.h"

#include <llhttp.h>

struct http1_limits {
    size_t request_line_bytes;
    size_t headers_bytes; /* of all header lines together, trailers included */
};

enum http1_event_type {
    HTTP1_MORE, /* all bytes are used, or the next request has to wait for http1_reset() */
    HTTP1_HEAD, /* the head is complete: the fields of struct http1 below say what it was */
    HTTP1_BODY, /* some of the body: a view of the input */
    HTTP1_END,  /* of the request */
    HTTP1_BAD,
};

struct http1_event {
    enum http1_event_type type;
    const uint8_t *data; /* BODY */
    size_t length;
    unsigned status; /* BAD: 400, 414, 417, 431, 501, 505; 503 without memory */
    const char *reason;
};

enum http1_state {
    HTTP1_IN_REQUEST_LINE,
    HTTP1_IN_HEADERS,
    HTTP1_IN_BODY,
    HTTP1_IN_CHUNK_LINE,
    HTTP1_IN_CHUNK,
    HTTP1_IN_CHUNK_END,
    HTTP1_IN_TRAILERS,
    HTTP1_ENDING, /* END is the next event */
    HTTP1_ENDED,
    HTTP1_IS_BAD,
};

/* Of the head: offsets are 16 bits because the limits are. */
struct http1_span {
    uint16_t start;
    uint16_t length;
};

struct http1 {
    /* After HTTP1_HEAD, until http1_reset(). */
    enum http_method method;
    const char *target; /* as it came, not empty */
    const char *host;   /* "" when an HTTP/1.0 request has none */
    unsigned minor_version;
    uint64_t content_length;
    bool has_length;
    bool is_chunked;
    bool wants_keep_alive;
    bool expects_continue;
    size_t header_count;

    /* May be set after http1_init(): also take methods that we do not serve; `method` is METHOD_NONE then. */
    bool any_method;

    /* The rest is its own. */
    llhttp_t llhttp;
    struct http1_limits limits;
    enum http1_state state;
    struct line line;
    struct buf head;
    size_t line_start;
    size_t header_bytes;
    uint64_t left; /* of the body or the chunk */
    bool has_head; /* HEAD is the next event */
    bool had_empty_line;
    unsigned status;
    const char *reason;
    struct http1_span target_span;
    struct http1_span names[HTTP_HEADERS_MAX];
    struct http1_span values[HTTP_HEADERS_MAX];
};

/* Limits above 16 KiB for the line or 40 KiB for headers count as these. */
void http1_init(struct http1 *http1, const struct http1_limits *limits);
void http1_release(struct http1 *http1);

/* The request was answered: make ready for the next. Its strings are gone. */
void http1_reset(struct http1 *http1);

/* Has no byte of a request come yet? */
bool http1_is_idle(const struct http1 *http1);

/* The next event. `*data` and `*length` move behind what was used. */
void http1_next(struct http1 *http1, const uint8_t **data, size_t *length, struct http1_event *ret_event);

/* After HTTP1_HEAD: the method's name, also of one that we do not serve. */
const char *http1_method_name(const struct http1 *http1);

/* After HTTP1_HEAD: the headers, which point into the parser. */
void http1_headers(const struct http1 *http1, struct headers *ret_headers);
