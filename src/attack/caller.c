#include "attack/caller.h"

#include "base/clock.h"
#include "base/fd.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LINE_SIZE = 128, LEFT_LIMIT_MS = 5000 };

const char *caller_key(void)
{
    return attempt_canary("DOOR_KEY");
}

int caller_dial(struct caller *caller)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)attempt_canary_number("DOOR_PORT")),
                                  .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct timeval limit = {.tv_sec = CALLER_LIMIT_MS / 1000};
    int on = 1;

    caller->held_start = 0;
    caller->held_length = 0;
    caller->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (caller->fd >= 0 && setsockopt(caller->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0 &&
        setsockopt(caller->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0 &&
        setsockopt(caller->fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) == 0 &&
        connect(caller->fd, (struct sockaddr *)&address, sizeof address) == 0)
        return 0;
    int error = errno;
    caller_hang_up(caller);
    return -error;
}

void caller_hang_up(struct caller *caller)
{
    if (caller->fd >= 0)
        (void)close(caller->fd);
    caller->fd = -1;
}

int caller_send(struct caller *caller, const void *data, size_t length)
{
    const char *at = data;

    while (length > 0) {
        ssize_t n = send(caller->fd, at, length, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        at += n;
        length -= (size_t)n;
    }
    return 0;
}

/* More of what comes: the count, -ENODATA for the end, -ETIMEDOUT, -errno. */
static ssize_t fill(struct caller *caller)
{
    ssize_t n;

    do
        n = recv(caller->fd, caller->held, sizeof caller->held, 0);
    while (n < 0 && errno == EINTR);
    caller->held_start = 0;
    caller->held_length = n > 0 ? (size_t)n : 0;
    return n > 0 ? n : n == 0 ? -ENODATA : errno == EAGAIN ? -ETIMEDOUT : -errno;
}

static int take_byte(struct caller *caller, char *ret_byte)
{
    if (caller->held_start == caller->held_length) {
        ssize_t n = fill(caller);
        if (n < 0)
            return (int)n;
    }
    *ret_byte = (char)caller->held[caller->held_start++];
    return 0;
}

/* Up to and with the empty line; every answer of ours has CR LF. */
static int take_head(struct caller *caller, char head[REPLY_HEAD_SIZE])
{
    size_t length = 0;
    int r = 0;

    while (length < 4 || memcmp(head + length - 4, "\r\n\r\n", 4) != 0) {
        if (length == REPLY_HEAD_SIZE - 1)
            return -EBADMSG;
        r = take_byte(caller, &head[length]);
        if (r < 0)
            return r == -ENODATA && length > 0 ? -EBADMSG : r;
        length++;
    }
    head[length] = '\0';
    return 0;
}

static int take_line(struct caller *caller, char line[LINE_SIZE])
{
    size_t length = 0;
    int r = 0;

    while (length == 0 || line[length - 1] != '\n') {
        if (length == LINE_SIZE - 1)
            return -EBADMSG;
        r = take_byte(caller, &line[length]);
        if (r < 0)
            return r;
        length++;
    }
    line[length] = '\0';
    return 0;
}

static int take_bytes(struct caller *caller, uint64_t count, struct reply *reply)
{
    while (count > 0) {
        ssize_t n = caller->held_start == caller->held_length ? fill(caller) : 0;
        if (n < 0)
            return (int)n;
        size_t there = caller->held_length - caller->held_start;
        size_t length = count < there ? (size_t)count : there;
        if (reply->body.length + length < reply->body.cap)
            ignore_result(buf_append(&reply->body, caller->held + caller->held_start, length)); /* it is for reading */
        caller->held_start += length;
        reply->body_bytes += length;
        count -= length;
    }
    return 0;
}

static int take_chunks(struct caller *caller, struct reply *reply)
{
    char line[LINE_SIZE];
    uint64_t size = 1;
    int r = 0;

    while (r == 0 && size > 0) {
        r = take_line(caller, line);
        size = r == 0 ? strtoull(line, NULL, 16) : 0;
        if (r == 0)
            r = take_bytes(caller, size, reply);
        if (r == 0)
            r = take_line(caller, line);
    }
    return r;
}

static const char *find_header(const char *head, const char *name)
{
    size_t length = strlen(name);

    for (const char *line = strstr(head, "\r\n"); line != NULL; line = strstr(line + 2, "\r\n")) {
        if (strncasecmp(line + 2, name, length) == 0 && line[2 + length] == ':')
            return line + 2 + length + 1;
    }
    return NULL;
}

static int take_body(struct caller *caller, struct reply *reply)
{
    const char *length = find_header(reply->head, "Content-Length");

    if (reply->status < 200 || reply->status == 204 || reply->status == 304)
        return 0;
    if (find_header(reply->head, "Transfer-Encoding") != NULL)
        return take_chunks(caller, reply);
    return length != NULL ? take_bytes(caller, strtoull(length, NULL, 10), reply) : -EBADMSG;
}

static int take_start(struct caller *caller, struct reply *reply)
{
    *reply = (struct reply){.body = buf_init(CALLER_BODY_MAX)};
    int r = take_head(caller, reply->head);
    if (r < 0)
        return r;
    if (strncmp(reply->head, "HTTP/1.1 ", 9) != 0)
        return -EBADMSG;
    reply->status = (int)strtol(reply->head + 9, NULL, 10);
    return 0;
}

int caller_take(struct caller *caller, struct reply *ret_reply)
{
    int r = take_start(caller, ret_reply);

    if (r < 0)
        return r;
    ret_reply->is_whole = take_body(caller, ret_reply) == 0;
    return buf_append(&ret_reply->body, "", 1);
}

bool caller_says_more(const struct caller *caller, unsigned limit_ms)
{
    struct pollfd ready = {.fd = caller->fd, .events = POLLIN};

    return caller->held_start < caller->held_length || poll(&ready, 1, (int)limit_ms) == 1;
}

bool caller_has_word(const struct caller *caller)
{
    return caller_says_more(caller, 0);
}

bool caller_is_left(struct caller *caller, unsigned limit_ms)
{
    char byte;

    if (caller->held_start < caller->held_length || !caller_says_more(caller, limit_ms))
        return false;
    return recv(caller->fd, &byte, 1, MSG_DONTWAIT) <= 0;
}

void reply_release(struct reply *reply)
{
    buf_release(&reply->body);
}

static const char *body_text(const struct reply *reply)
{
    return reply->body.data != NULL ? (const char *)reply->body.data : "";
}

void reply_field(const struct reply *reply, const char *name, char *ret_text, size_t size)
{
    char quoted[64];

    (void)snprintf(quoted, sizeof quoted, "\"%s\":", name);
    const char *at = strstr(body_text(reply), quoted);
    at = at != NULL ? at + strlen(quoted) : "";
    if (*at == '"')
        at++;
    (void)snprintf(ret_text, size, "%.*s", (int)strcspn(at, "\",}]"), at);
}

bool reply_says(const struct reply *reply, const char *words)
{
    return strstr(body_text(reply), words) != NULL;
}

/* Is there such a line among these? */
static bool has_line(const char *headers, const char *name)
{
    size_t length = strlen(name);

    for (; headers != NULL && *headers != '\0'; headers += strcspn(headers, "\n") + 1) {
        if (strncasecmp(headers, name, length) == 0 && headers[length] == ':')
            return true;
        if (strchr(headers, '\n') == NULL)
            return false;
    }
    return false;
}

static int add(struct buf *head, const char *text)
{
    return buf_append(head, text, strlen(text));
}

static int send_ask(struct caller *caller, const struct ask *ask)
{
    struct buf head = buf_init(CALLER_BODY_MAX);
    const char *more = ask->headers != NULL ? ask->headers : "";
    size_t length = ask->body == NULL ? 0 : ask->length > 0 ? ask->length : strlen(ask->body);
    int r = buf_printf(&head, "%s ", ask->method != NULL ? ask->method : "GET");

    if (r == 0)
        r = add(&head, ask->path);
    if (r == 0)
        r = add(&head, " HTTP/1.1\r\nConnection: close\r\n");
    if (r == 0)
        r = add(&head, more);
    if (r == 0 && !has_line(more, "Host"))
        r = add(&head, "Host: localhost\r\n");
    if (r == 0 && ask->key != NULL)
        r = buf_printf(&head, "Authorization: Bearer %s\r\n", ask->key);
    if (r == 0 && ask->body != NULL && !has_line(more, "Content-Type"))
        r = add(&head, "Content-Type: application/json\r\n");
    if (r == 0 && ask->body != NULL)
        r = buf_printf(&head, "Content-Length: %zu\r\n", length);
    if (r == 0)
        r = add(&head, "\r\n");
    if (r == 0)
        r = caller_send(caller, head.data, head.length);
    /* What is refused is not read to its end: the answer is there all the same. */
    if (r == 0 && length > 0)
        ignore_result(caller_send(caller, ask->body, length));
    buf_release(&head);
    return r;
}

int caller_ask(const struct ask *ask, struct reply *ret_reply)
{
    struct caller caller;
    struct reply reply = {0};

    int r = caller_dial(&caller);
    if (r == 0)
        r = send_ask(&caller, ask);
    /* Some answers have no end: where only the status matters it is not waited for. */
    if (r == 0)
        r = ret_reply != NULL ? caller_take(&caller, &reply) : take_start(&caller, &reply);
    caller_hang_up(&caller);
    int status = r < 0 ? 0 : reply.status;
    if (ret_reply != NULL)
        *ret_reply = reply;
    else
        reply_release(&reply);
    return status;
}

static bool is_among(int status, const int *statuses)
{
    for (; *statuses != 0; statuses++) {
        if (*statuses == status)
            return true;
    }
    return false;
}

void caller_try(struct attempt *attempt, const char *what, const struct ask *ask, const int *statuses)
{
    int status = caller_ask(ask, NULL);

    attempt_say(attempt, what, is_among(status, statuses), status == 0 ? "no answer" : "the answer is %d", status);
}

void caller_try_bytes(struct attempt *attempt, const char *what, const char *bytes, size_t length, const int *statuses)
{
    struct caller caller;
    struct reply reply = {0};
    bool is_left = false;

    int r = caller_dial(&caller);
    if (r == 0)
        ignore_result(caller_send(&caller, bytes, length)); /* it may have heard enough before the end */
    if (r == 0)
        r = caller_take(&caller, &reply);
    if (r == 0)
        is_left = caller_is_left(&caller, LEFT_LIMIT_MS);
    caller_hang_up(&caller);
    attempt_say(attempt, what, r == 0 && is_left && is_among(reply.status, statuses), "%s %d",
                r < 0     ? "no answer:"
                : is_left ? "the answer is"
                          : "it goes on after the answer",
                r < 0 ? -r : reply.status);
    reply_release(&reply);
}
