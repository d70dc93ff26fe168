#include "gateway/net/head.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

/* On every answer, unless the handler says otherwise. */
static const struct header always[] = {
    {"X-Content-Type-Options", "nosniff"},
    {"X-Frame-Options", "DENY"},
    {"Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"},
    {"Cache-Control", "no-store"},
};

static const char *const reserved[] = {"Content-Length", "Transfer-Encoding", "Connection", "Date",
                                       "Keep-Alive",     "Trailer",           "Upgrade"};

bool head_is_reserved(const char *name)
{
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++) {
        if (strcasecmp(name, reserved[i]) == 0)
            return true;
    }
    return false;
}

static bool is_set(const struct head *head, const char *name)
{
    for (size_t i = 0; i < head->header_count; i++) {
        if (strcasecmp(head->headers[i].name, name) == 0)
            return true;
    }
    return false;
}

static int put(struct buf *buf, const char *text)
{
    return buf_append(buf, text, strlen(text));
}

static int put_header(struct buf *buf, const char *name, const char *value)
{
    if (value == NULL)
        return 0;
    int r = put(buf, name);
    if (r == 0)
        r = put(buf, ": ");
    if (r == 0)
        r = put(buf, value);
    return r == 0 ? put(buf, "\r\n") : r;
}

static int put_framing(struct buf *buf, const struct head *head)
{
    char number[24];

    switch (head->framing) {
    case HEAD_LENGTH:
        (void)snprintf(number, sizeof number, "%llu", (unsigned long long)head->length);
        return put_header(buf, "Content-Length", number);
    case HEAD_CHUNKED:
        return put(buf, "Transfer-Encoding: chunked\r\n");
    case HEAD_NO_BODY:
    case HEAD_UNTIL_CLOSE:
        break;
    }
    return 0;
}

static int put_connection(struct buf *buf, const struct head *head)
{
    if (!head->keep_alive)
        return put(buf, "Connection: close\r\n");
    return head->minor_version == 0 ? put(buf, "Connection: keep-alive\r\n") : 0;
}

static int put_always(struct buf *buf, const struct head *head)
{
    int r = is_set(head, "X-Request-ID") ? 0 : put_header(buf, "X-Request-ID", head->request_id);

    for (size_t i = 0; r == 0 && i < sizeof always / sizeof *always; i++) {
        if (!is_set(head, always[i].name))
            r = put_header(buf, always[i].name, always[i].value);
    }
    return r;
}

int head_write(struct buf *buf, const struct head *head)
{
    char status[8];

    (void)snprintf(status, sizeof status, "%03u ", head->status % 1000);
    /* RFC 9110, 2.5: our own version, also to a client of an older one. */
    int r = put(buf, "HTTP/1.1 ");
    if (r == 0)
        r = put(buf, status);
    if (r == 0)
        r = put(buf, http_status_text(head->status));
    if (r == 0)
        r = put(buf, "\r\n");
    if (r == 0)
        r = put_header(buf, "Date", head->date);
    if (r == 0 && !is_set(head, "Content-Type"))
        r = put_header(buf, "Content-Type", head->type);
    if (r == 0)
        r = put_framing(buf, head);
    if (r == 0)
        r = put_connection(buf, head);
    if (r == 0)
        r = put_always(buf, head);
    for (size_t i = 0; r == 0 && i < head->header_count; i++)
        r = put_header(buf, head->headers[i].name, head->headers[i].value);
    return r == 0 ? put(buf, "\r\n") : r;
}

void head_date(int64_t unix_seconds, char date[HEAD_DATE_SIZE])
{
    static const char days[7][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char months[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                       "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    time_t when = (time_t)unix_seconds;
    struct tm tm = {0};

    (void)gmtime_r(&when, &tm);
    (void)snprintf(date, HEAD_DATE_SIZE, "%s, %02d %s %04d %02d:%02d:%02d GMT", days[tm.tm_wday % 7], tm.tm_mday % 100,
                   months[tm.tm_mon % 12], (tm.tm_year + 1900) % 10000, tm.tm_hour % 100, tm.tm_min % 100,
                   tm.tm_sec % 100);
}
