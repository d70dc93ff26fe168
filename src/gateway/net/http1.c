/*
 * Theory of operation. The input is cut into lines and pieces of body. A line of the head is checked, copied into
 * `head` and given to llhttp whole, from there, so that what llhttp points to stays where it is and needs no further
 * copy: with the head complete a NUL is put behind each name and value. Lines of chunks and trailers are given to
 * llhttp as they come; nothing of them is kept. llhttp says where the body is and how long; as it never gets a byte
 * beyond the line or piece in hand, it is never ahead of us.
 */
#include "gateway/net/http1.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    REQUEST_LINE_MOST = 16384,
    HEADERS_MOST = 40960,
    CHUNK_LINE_MAX = 256,
};

static int refuse(struct http1 *http1, unsigned status, const char *reason)
{
    /* The first reason is the right one: llhttp reports a callback's refusal as an error of its own. */
    if (http1->state != HTTP1_IS_BAD) {
        http1->state = HTTP1_IS_BAD;
        http1->status = status;
        http1->reason = reason;
    }
    return -EBADMSG;
}

static const struct {
    llhttp_errno_t error;
    unsigned status;
    const char *reason;
} refusals[] = {
    {HPE_INVALID_METHOD, 501, "the method is not one this server knows"},
    {HPE_INVALID_VERSION, 505, "the HTTP version is neither 1.0 nor 1.1"},
    {HPE_PAUSED_H2_UPGRADE, 505, "the HTTP version is neither 1.0 nor 1.1"},
    {HPE_INVALID_URL, 400, "the request target is malformed"},
    {HPE_INVALID_CONSTANT, 400, "the request line is malformed"},
    {HPE_INVALID_CONTENT_LENGTH, 400, "Content-Length is not a number"},
    {HPE_UNEXPECTED_CONTENT_LENGTH, 400, "there is more than one length"},
    {HPE_INVALID_TRANSFER_ENCODING, 400, "Transfer-Encoding is not chunked"},
    {HPE_INVALID_CHUNK_SIZE, 400, "a chunk's size is not a number"},
};

static int refuse_parsed(struct http1 *http1, llhttp_errno_t error)
{
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        if (refusals[i].error == error)
            return refuse(http1, refusals[i].status, refusals[i].reason);
    }
    return refuse(http1, 400, "the request is malformed");
}

static struct http1_span span_of(const struct http1 *http1, const char *at, size_t length)
{
    return (struct http1_span){(uint16_t)((const uint8_t *)at - http1->head.data), (uint16_t)length};
}

static int on_url(llhttp_t *llhttp, const char *at, size_t length)
{
    struct http1 *http1 = llhttp->data;

    http1->target_span = span_of(http1, at, length);
    return 0;
}

static int on_header_field(llhttp_t *llhttp, const char *at, size_t length)
{
    struct http1 *http1 = llhttp->data;

    if (http1->state != HTTP1_IN_HEADERS)
        return 0;
    if (http1->header_count == HTTP_HEADERS_MAX)
        return refuse(http1, 431, "there are too many headers");
    http1->names[http1->header_count] = span_of(http1, at, length);
    http1->values[http1->header_count] = span_of(http1, at + length, 0);
    http1->header_count++;
    return 0;
}

static int on_header_value(llhttp_t *llhttp, const char *at, size_t length)
{
    struct http1 *http1 = llhttp->data;

    if (http1->state != HTTP1_IN_HEADERS || http1->header_count == 0)
        return 0;
    while (length > 0 && (at[length - 1] == ' ' || at[length - 1] == '\t'))
        length--;
    /* Where llhttp sees an empty one may be the next line already. */
    if (length > 0)
        http1->values[http1->header_count - 1] = span_of(http1, at, length);
    return 0;
}

static void end_string(struct http1 *http1, struct http1_span span)
{
    http1->head.data[span.start + span.length] = '\0';
}

static const char *string_at(const struct http1 *http1, struct http1_span span)
{
    return (const char *)http1->head.data + span.start;
}

static int check_host(struct http1 *http1, const struct headers *headers)
{
    const char *host = headers_find(headers, "Host");

    if (headers_count(headers, "Host") > 1)
        return refuse(http1, 400, "there is more than one Host");
    if (host == NULL && http1->minor_version > 0)
        return refuse(http1, 400, "Host is missing");
    if (host != NULL && !http_is_host(host, strlen(host)))
        return refuse(http1, 400, "Host is malformed");
    http1->host = host != NULL ? host : "";
    return 0;
}

/* As llhttp understood it, or it is not understood. */
static int check_length(struct http1 *http1, const struct headers *headers)
{
    const char *text = headers_find(headers, "Content-Length");
    char *end = NULL;

    http1->has_length = text != NULL;
    if (text == NULL)
        return 0;
    if (headers_count(headers, "Content-Length") > 1 || headers_find(headers, "Transfer-Encoding") != NULL)
        return refuse(http1, 400, "there is more than one length");
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 18 || text[digits] != '\0')
        return refuse(http1, 400, "Content-Length is not a number");
    http1->content_length = strtoull(text, &end, 10);
    if (http1->content_length != http1->llhttp.content_length)
        return refuse(http1, 400, "Content-Length is not a number");
    return 0;
}

static int check_encoding(struct http1 *http1, const struct headers *headers)
{
    const char *encoding = headers_find(headers, "Transfer-Encoding");

    http1->is_chunked = encoding != NULL;
    if (encoding == NULL)
        return (http1->llhttp.flags & F_CHUNKED) != 0 ? refuse(http1, 400, "the body has no length") : 0;
    if (http1->minor_version == 0 || headers_count(headers, "Transfer-Encoding") > 1)
        return refuse(http1, 400, "Transfer-Encoding can't be here");
    if (strcasecmp(encoding, "chunked") != 0)
        return refuse(http1, 501, "Transfer-Encoding is not chunked");
    return (http1->llhttp.flags & F_CHUNKED) == 0 ? refuse(http1, 400, "Transfer-Encoding is not chunked") : 0;
}

static int check_expect(struct http1 *http1, const struct headers *headers)
{
    const char *expect = headers_find(headers, "Expect");

    /* RFC 9110, 10.1.1: one of HTTP/1.0 is ignored. */
    if (expect == NULL || http1->minor_version == 0)
        return 0;
    if (strcasecmp(expect, "100-continue") != 0)
        return refuse(http1, 417, "only 100-continue can be expected");
    http1->expects_continue = http1->is_chunked || http1->content_length > 0;
    return 0;
}

static int check_head(struct http1 *http1)
{
    struct headers headers;

    end_string(http1, http1->target_span);
    for (size_t i = 0; i < http1->header_count; i++) {
        end_string(http1, http1->names[i]);
        end_string(http1, http1->values[i]);
    }
    http1->target = string_at(http1, http1->target_span);
    http1_headers(http1, &headers);
    int r = check_host(http1, &headers);
    if (r == 0)
        r = check_length(http1, &headers);
    if (r == 0)
        r = check_encoding(http1, &headers);
    if (r == 0)
        r = check_expect(http1, &headers);
    http1->wants_keep_alive = http1->minor_version > 0 ? !headers_have_word(&headers, "Connection", "close")
                                                       : headers_have_word(&headers, "Connection", "keep-alive") &&
                                                             !headers_have_word(&headers, "Connection", "close");
    return r;
}

static int on_headers_complete(llhttp_t *llhttp)
{
    struct http1 *http1 = llhttp->data;

    /* Nobody here upgrades yet, and RFC 9110, 7.8 lets a server ignore the wish. */
    llhttp->upgrade = 0;
    http1->has_head = true;
    return check_head(http1) < 0 ? -1 : 0;
}

static int on_chunk_header(llhttp_t *llhttp)
{
    struct http1 *http1 = llhttp->data;

    http1->left = llhttp->content_length;
    http1->state = http1->left > 0 ? HTTP1_IN_CHUNK : HTTP1_IN_TRAILERS;
    return 0;
}

static int on_message_complete(llhttp_t *llhttp)
{
    struct http1 *http1 = llhttp->data;

    http1->state = HTTP1_ENDING;
    return 0;
}

static const llhttp_settings_t settings = {
    .on_url = on_url,
    .on_header_field = on_header_field,
    .on_header_value = on_header_value,
    .on_headers_complete = on_headers_complete,
    .on_chunk_header = on_chunk_header,
    .on_message_complete = on_message_complete,
};

static void begin(struct http1 *http1)
{
    llhttp_init(&http1->llhttp, HTTP_REQUEST, &settings);
    http1->llhttp.data = http1;
    http1->state = HTTP1_IN_REQUEST_LINE;
    http1->line = line_init(LINE_REQUEST, http1->limits.request_line_bytes);
}

void http1_init(struct http1 *http1, const struct http1_limits *limits)
{
    memset(http1, 0, offsetof(struct http1, names));
    http1->limits = *limits;
    if (http1->limits.request_line_bytes > REQUEST_LINE_MOST)
        http1->limits.request_line_bytes = REQUEST_LINE_MOST;
    if (http1->limits.headers_bytes > HEADERS_MOST)
        http1->limits.headers_bytes = HEADERS_MOST;
    http1->head = buf_init(http1->limits.request_line_bytes + http1->limits.headers_bytes + 8);
    begin(http1);
}

void http1_release(struct http1 *http1)
{
    buf_release(&http1->head);
}

void http1_reset(struct http1 *http1)
{
    struct http1_limits limits = http1->limits;
    bool any_method = http1->any_method;

    http1_release(http1);
    http1_init(http1, &limits);
    http1->any_method = any_method;
}

bool http1_is_idle(const struct http1 *http1)
{
    return http1->state == HTTP1_IN_REQUEST_LINE && http1->line.length == 0 && !http1->line.has_cr;
}

void http1_headers(const struct http1 *http1, struct headers *ret_headers)
{
    ret_headers->count = http1->header_count;
    for (size_t i = 0; i < http1->header_count; i++)
        ret_headers->items[i] = (struct header){string_at(http1, http1->names[i]), string_at(http1, http1->values[i])};
}

static int parse(struct http1 *http1, const void *data, size_t length)
{
    llhttp_errno_t error = llhttp_execute(&http1->llhttp, data, length);

    return error == HPE_OK ? 0 : refuse_parsed(http1, error);
}

const char *http1_method_name(const struct http1 *http1)
{
    return llhttp_method_name((llhttp_method_t)http1->llhttp.method);
}

static int check_request_line(struct http1 *http1)
{
    const char *name = http1_method_name(http1);

    http1->method = http_method_from(name, strlen(name));
    http1->minor_version = http1->llhttp.http_minor;
    if (http1->llhttp.http_major != 1 || http1->minor_version > 1)
        return refuse(http1, 505, "the HTTP version is neither 1.0 nor 1.1");
    if (http1->method == METHOD_NONE && !http1->any_method)
        return refuse(http1, 501, "the method is not one this server knows");
    return 0;
}

/* All headers share one limit, trailers too. */
static void begin_header(struct http1 *http1)
{
    size_t most = http1->limits.headers_bytes;

    if (http1->line.kind == LINE_HEADER)
        http1->header_bytes += http1->line.length + 2;
    http1->line = line_init(LINE_HEADER, most > http1->header_bytes ? most - http1->header_bytes : 0);
}

/* A line of the head is complete. */
static int end_head_line(struct http1 *http1)
{
    bool is_empty = http1->line.length == 0;
    bool is_first = http1->state == HTTP1_IN_REQUEST_LINE;

    if (is_first && is_empty) {
        /* RFC 9112, 2.2: one, as an old client sends it after a body. */
        if (http1->had_empty_line)
            return refuse(http1, 400, "the request starts with empty lines");
        http1->had_empty_line = true;
        http1->head.length = 0;
        http1->line = line_init(LINE_REQUEST, http1->limits.request_line_bytes);
        return 0;
    }
    int r = parse(http1, http1->head.data + http1->line_start, http1->head.length - http1->line_start);
    if (r == 0 && is_first)
        r = check_request_line(http1);
    if (r < 0)
        return r;
    http1->line_start = http1->head.length;
    begin_header(http1);
    if (is_first)
        http1->state = HTTP1_IN_HEADERS;
    else if (is_empty && http1->state == HTTP1_IN_HEADERS)
        http1->state = HTTP1_IN_BODY;
    http1->left = http1->content_length;
    if (is_empty && http1->is_chunked) {
        http1->state = HTTP1_IN_CHUNK_LINE;
        http1->line = line_init(LINE_CHUNK, CHUNK_LINE_MAX);
    }
    return 0;
}

/* Check what there is of the line and say whether it has ended: 1, 0 or refused. */
static int take_line(struct http1 *http1, const uint8_t *data, size_t length, size_t *ret_used)
{
    int r = line_check(&http1->line, data, length, ret_used);

    if (r == -EMSGSIZE && http1->line.kind == LINE_REQUEST)
        return refuse(http1, 414, "the request line is too long");
    if (r == -EMSGSIZE && http1->line.kind == LINE_HEADER)
        return refuse(http1, 431, "the headers are too large");
    return r < 0 ? refuse(http1, 400, "a line has a byte that can't be there") : r;
}

static int next_in_head(struct http1 *http1, const uint8_t *data, size_t length, size_t *ret_used)
{
    int ended = take_line(http1, data, length, ret_used);

    if (ended < 0)
        return ended;
    /* The lines' own limits keep it below the buffer's cap. */
    if (buf_append(&http1->head, data, *ret_used) < 0)
        return refuse(http1, 503, "there is no memory for the headers");
    return ended > 0 ? end_head_line(http1) : 0;
}

static int next_chunk_line(struct http1 *http1, const uint8_t *data, size_t length, size_t *ret_used)
{
    int ended = take_line(http1, data, length, ret_used);

    if (ended < 0 || parse(http1, data, *ret_used) < 0)
        return -EBADMSG;
    if (ended > 0 && http1->state == HTTP1_IN_CHUNK_LINE)
        return refuse(http1, 400, "a chunk's size is not a number");
    if (ended > 0)
        begin_header(http1);
    return 0;
}

static int next_chunk_end(struct http1 *http1, const uint8_t *data, size_t length, size_t *ret_used)
{
    int ended = take_line(http1, data, length, ret_used);

    if (ended < 0 || parse(http1, data, *ret_used) < 0)
        return -EBADMSG;
    if (ended > 0) {
        http1->state = HTTP1_IN_CHUNK_LINE;
        http1->line = line_init(LINE_CHUNK, CHUNK_LINE_MAX);
    }
    return 0;
}

static int next_trailer(struct http1 *http1, const uint8_t *data, size_t length, size_t *ret_used)
{
    int ended = take_line(http1, data, length, ret_used);

    if (ended < 0 || parse(http1, data, *ret_used) < 0)
        return -EBADMSG;
    if (ended > 0)
        begin_header(http1);
    return 0;
}

static int next_body(struct http1 *http1, const uint8_t *data, size_t length, size_t *ret_used,
                     struct http1_event *event)
{
    size_t piece = length < http1->left ? length : (size_t)http1->left;
    bool in_chunk = http1->state == HTTP1_IN_CHUNK;

    http1->left -= piece;
    *ret_used = piece;
    if (parse(http1, data, piece) < 0)
        return -EBADMSG;
    if (in_chunk && http1->left == 0) {
        http1->state = HTTP1_IN_CHUNK_END;
        http1->line = line_init(LINE_CHUNK_END, 0);
    }
    *event = (struct http1_event){.type = HTTP1_BODY, .data = data, .length = piece};
    return 0;
}

/* Use some bytes. An event may come of it. */
static int step(struct http1 *http1, const uint8_t *data, size_t length, size_t *ret_used, struct http1_event *event)
{
    switch (http1->state) {
    case HTTP1_IN_REQUEST_LINE:
    case HTTP1_IN_HEADERS:
        return next_in_head(http1, data, length, ret_used);
    case HTTP1_IN_CHUNK_LINE:
        return next_chunk_line(http1, data, length, ret_used);
    case HTTP1_IN_CHUNK_END:
        return next_chunk_end(http1, data, length, ret_used);
    case HTTP1_IN_TRAILERS:
        return next_trailer(http1, data, length, ret_used);
    case HTTP1_IN_BODY:
    case HTTP1_IN_CHUNK:
        return next_body(http1, data, length, ret_used, event);
    case HTTP1_ENDING:
    case HTTP1_ENDED:
    case HTTP1_IS_BAD:
        break;
    }
    return 0;
}

/* An event for which no further byte is needed. */
static bool has_event(struct http1 *http1, struct http1_event *event)
{
    if (http1->state == HTTP1_IS_BAD) {
        *event = (struct http1_event){.type = HTTP1_BAD, .status = http1->status, .reason = http1->reason};
    } else if (http1->has_head) {
        http1->has_head = false;
        *event = (struct http1_event){.type = HTTP1_HEAD};
    } else if (http1->state == HTTP1_ENDING) {
        http1->state = HTTP1_ENDED;
        *event = (struct http1_event){.type = HTTP1_END};
    }
    return event->type != HTTP1_MORE;
}

void http1_next(struct http1 *http1, const uint8_t **data, size_t *length, struct http1_event *ret_event)
{
    struct http1_event event = {.type = HTTP1_MORE};

    while (!has_event(http1, &event) && *length > 0 && http1->state != HTTP1_ENDED) {
        size_t used = 0;
        int r = step(http1, *data, *length, &used, &event);
        *data += used;
        *length -= used;
        if (r == 0 && event.type == HTTP1_BODY)
            break;
    }
    *ret_event = event;
}
