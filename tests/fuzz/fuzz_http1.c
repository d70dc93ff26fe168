/*
 * An HTTP/1 connection: the input is what a client sends. It is parsed whole and in small pieces, which must come to
 * the same; and whatever is accepted must be free of what could be read in two ways.
 */
#include "base/buf.h"
#include "fuzz.h"
#include "gateway/net/http1.h"

#include <string.h>
#include <strings.h>

enum { LINE = 512, HEADERS = 2048, STORY = 1 << 22 };

static void tell(struct buf *story, const char *what, const void *data, size_t length)
{
    MUST(buf_append(story, what, strlen(what)) == 0);
    MUST(buf_append(story, data, length) == 0);
    MUST(buf_append(story, "|", 1) == 0);
}

static void check_string(const char *text, size_t most)
{
    MUST(strnlen(text, most + 1) <= most);
    MUST(http_is_value(text));
}

static void check_head(const struct http1 *http1, struct buf *story)
{
    static struct headers headers;

    http1_headers(http1, &headers);
    MUST(headers.count <= HTTP_HEADERS_MAX);
    MUST(http1->method > METHOD_NONE && http1->method < METHOD_COUNT && http1->minor_version <= 1);
    check_string(http1->target, LINE);
    MUST(strchr(http1->target, ' ') == NULL && http1->target[0] != '\0');
    tell(story, http_method_name(http1->method), http1->target, strlen(http1->target));
    for (size_t i = 0; i < headers.count; i++) {
        const char *value = headers.items[i].value;
        check_string(value, HEADERS);
        MUST(http_is_token(headers.items[i].name, strlen(headers.items[i].name)));
        MUST(value[0] != ' ' && value[0] != '\t');
        tell(story, headers.items[i].name, value, strlen(value));
    }
    MUST(headers_count(&headers, "Host") == 1 || (http1->minor_version == 0 && http1->host[0] == '\0'));
    MUST(headers_count(&headers, "Content-Length") + headers_count(&headers, "Transfer-Encoding") <= 1);
    MUST(http1->is_chunked == (headers_count(&headers, "Transfer-Encoding") == 1));
    MUST(http1->has_length == (headers_count(&headers, "Content-Length") == 1));
    MUST(http1->has_length || http1->content_length == 0);
}

/* One event at a time, each only where it may come. */
struct reading {
    bool has_head;
    uint64_t body;
};

static void check_event(struct http1 *http1, struct reading *reading, const struct http1_event *event,
                        struct buf *story)
{
    switch (event->type) {
    case HTTP1_HEAD:
        MUST(!reading->has_head);
        reading->has_head = true;
        check_head(http1, story);
        break;
    case HTTP1_BODY:
        MUST(reading->has_head && event->length > 0);
        reading->body += event->length;
        MUST(buf_append(story, event->data, event->length) == 0);
        break;
    case HTTP1_END:
        MUST(reading->has_head && (http1->is_chunked || reading->body == http1->content_length));
        *reading = (struct reading){0};
        tell(story, "end", "", 0);
        http1_reset(http1);
        break;
    case HTTP1_BAD:
        MUST(event->status == 400 || event->status == 414 || event->status == 417 || event->status == 431 ||
             event->status == 501 || event->status == 505);
        MUST(event->reason != NULL);
        tell(story, "bad", &event->status, sizeof event->status);
        break;
    case HTTP1_MORE:
        break;
    }
}

static void parse(const uint8_t *data, size_t size, size_t piece, struct buf *story)
{
    static struct http1 http1;
    struct http1_limits limits = {LINE, HEADERS};
    struct reading reading = {0};
    struct http1_event event = {.type = HTTP1_MORE};

    http1_init(&http1, &limits);
    while (size > 0 && event.type != HTTP1_BAD) {
        const uint8_t *at = data;
        size_t length = size < piece ? size : piece;
        data += length;
        size -= length;
        do {
            http1_next(&http1, &at, &length, &event);
            check_event(&http1, &reading, &event, story);
        } while (event.type != HTTP1_MORE && event.type != HTTP1_BAD);
        MUST(length == 0 || event.type == HTTP1_BAD);
        MUST(http1.head.length <= LINE + HEADERS + 8);
    }
    http1_release(&http1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf whole = buf_init(STORY);
    struct buf pieces = buf_init(STORY);

    if (size > 1 << 16)
        return 0;
    parse(data, size, size > 0 ? size : 1, &whole);
    parse(data, size, 1 + size % 5, &pieces);
    MUST(whole.length == pieces.length);
    MUST(whole.length == 0 || memcmp(whole.data, pieces.data, whole.length) == 0);
    buf_release(&whole);
    buf_release(&pieces);
    return 0;
}
