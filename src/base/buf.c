#include "base/buf.h"

#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void buf_release(struct buf *buf)
{
    free(buf->data);
    *buf = buf_init(buf->cap);
}

static int buf_reserve(struct buf *buf, size_t more)
{
    if (more > buf->cap - buf->length)
        return -ENOBUFS;
    if (more <= buf->room - buf->length)
        return 0;

    size_t want = buf->room < 256 ? 256 : buf->room * 2;
    if (want < buf->length + more)
        want = buf->length + more;
    if (want > buf->cap)
        want = buf->cap;
    uint8_t *data = realloc(buf->data, want);
    if (data == NULL)
        return -ENOMEM;
    buf->data = data;
    buf->room = want;
    return 0;
}

int buf_append(struct buf *buf, const void *data, size_t length)
{
    int r = buf_reserve(buf, length);

    if (r < 0)
        return r;
    if (length > 0)
        memcpy(buf->data + buf->length, data, length);
    buf->length += length;
    return 0;
}

int buf_printf(struct buf *buf, const char *format, ...)
{
    char text[1024];
    va_list args;

    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= sizeof text)
        return -ENOBUFS;
    return buf_append(buf, text, (size_t)n);
}

static int append_json_byte(struct buf *buf, uint8_t byte)
{
    switch (byte) {
    case '"':
        return buf_append(buf, "\\\"", 2);
    case '\\':
        return buf_append(buf, "\\\\", 2);
    case '\n':
        return buf_append(buf, "\\n", 2);
    case '\t':
        return buf_append(buf, "\\t", 2);
    case '\r':
        return buf_append(buf, "\\r", 2);
    default:
        /* DEL and C0 controls as \u00XX: a terminal that shows the JSON raw must not obey them. */
        if (byte < 0x20 || byte == 0x7f)
            return buf_printf(buf, "\\u%04x", byte);
        return buf_append(buf, &byte, 1);
    }
}

int buf_append_json(struct buf *buf, const void *text, size_t length)
{
    const uint8_t *at = text;
    size_t start = buf->length;
    int r = buf_append(buf, "\"", 1);

    while (r == 0 && length > 0) {
        size_t n = utf8_sequence(at, length);
        if (n == 0) {
            r = buf_append(buf, "\xef\xbf\xbd", 3);
            n = 1;
        } else if (n == 1) {
            r = append_json_byte(buf, *at);
        } else if (n == 2 && at[0] == 0xc2 && at[1] < 0xa0) {
            r = buf_printf(buf, "\\u%04x", at[1]); /* C1 controls: CSI and friends in one character */
        } else {
            r = buf_append(buf, at, n);
        }
        at += n;
        length -= n;
    }
    if (r == 0)
        r = buf_append(buf, "\"", 1);
    if (r < 0)
        buf->length = start;
    return r;
}
