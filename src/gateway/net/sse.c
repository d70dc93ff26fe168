#include "gateway/net/sse.h"

#include <string.h>

enum { EVENT_MOST = 4 << 20 };

static bool is_line(const char *text)
{
    return text == NULL || text[strcspn(text, "\r\n")] == '\0';
}

static int put_line(struct buf *buf, const char *field, const void *value, size_t length)
{
    int r = buf_append(buf, field, strlen(field));

    if (r == 0)
        r = buf_append(buf, value, length);
    return r == 0 ? buf_append(buf, "\n", 1) : r;
}

/* The length of the line at `text`, and of its end. */
static size_t line_length(const char *text, size_t length, size_t *ret_end)
{
    size_t n = 0;

    while (n < length && text[n] != '\n' && text[n] != '\r')
        n++;
    *ret_end = n == length ? 0 : n + 1 < length && text[n] == '\r' && text[n + 1] == '\n' ? 2 : 1;
    return n;
}

int sse_format(struct buf *buf, const char *event, const char *id, const void *data, size_t length)
{
    const char *text = data;
    size_t before = buf->length;
    int r = is_line(event) && is_line(id) ? 0 : -EINVAL;

    if (r == 0 && event != NULL)
        r = put_line(buf, "event: ", event, strlen(event));
    if (r == 0 && id != NULL)
        r = put_line(buf, "id: ", id, strlen(id));
    do {
        size_t end = 0;
        size_t n = line_length(text, length, &end);
        if (r == 0)
            r = put_line(buf, "data: ", text, n);
        text += n + end;
        length -= n + end;
    } while (r == 0 && length > 0);
    if (r == 0)
        r = buf_append(buf, "\n", 1);
    if (r < 0)
        buf->length = before;
    return r;
}

void sse_start(struct request *request)
{
    request_start(request, 200, "text/event-stream", REQUEST_LENGTH_UNKNOWN);
}

int sse_event(struct request *request, const char *event, const char *id, const void *data, size_t length)
{
    struct buf buf = buf_init(EVENT_MOST);
    int r = sse_format(&buf, event, id, data, length);

    if (r == 0)
        r = request_write(request, buf.data, buf.length);
    buf_release(&buf);
    return r;
}

int sse_heartbeat(struct request *request)
{
    return request_write(request, ":\n\n", 3);
}
