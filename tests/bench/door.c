#include "door.h"

#include "base/cleanup.h"
#include "base/fd.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum { IN_MAX = 1 << 20, BODY_MAX = 4 << 20, PIECE = 65536 };

int door_open(struct door *door, const char *port, const char *key, struct error *err)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)strtoul(port, NULL, 10)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    *door = (struct door){.key = key, .in = buf_init(IN_MAX), .body = buf_init(BODY_MAX)};
    door->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (door->fd < 0 || setsockopt(door->fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)) < 0 ||
        connect(door->fd, (const struct sockaddr *)&address, sizeof address) < 0)
        return error_errno(err, "connecting to 127.0.0.1:%s", port);
    return 0;
}

void door_close(struct door *door)
{
    close_fd(&door->fd);
    buf_release(&door->in);
    buf_release(&door->body);
}

static int receive_more(struct door *door, struct error *err)
{
    static _Thread_local uint8_t piece[PIECE];
    ssize_t n = read(door->fd, piece, sizeof piece);

    if (n <= 0)
        return n < 0 ? error_errno(err, "reading an answer")
                     : error_set(err, ERROR_PROTOCOL, EPIPE, "the daemon hung up");
    int r = buf_append(&door->in, piece, (size_t)n);
    return r < 0 ? error_set(err, ERROR_PROTOCOL, -r, "an answer's head is too large") : 0;
}

static void consume(struct door *door, size_t count)
{
    memmove(door->in.data, door->in.data + count, door->in.length - count);
    door->in.length -= count;
}

/* Up to and with `end`; its length. */
static int take_until(struct door *door, const char *end, size_t *ret_length, struct error *err)
{
    size_t length = strlen(end);

    for (;;) {
        const uint8_t *at = door->in.length > 0 ? memmem(door->in.data, door->in.length, end, length) : NULL;
        if (at != NULL) {
            *ret_length = (size_t)(at - door->in.data) + length;
            return 0;
        }
        int r = receive_more(door, err);
        if (r < 0)
            return r;
    }
}

struct head {
    bool chunked;
    uint64_t length;
};

static int read_head(struct door *door, struct head *ret_head, struct error *err)
{
    char text[16384];
    char *save = NULL;
    size_t length;
    int r = take_until(door, "\r\n\r\n", &length, err);

    if (r < 0)
        return r;
    if (length >= sizeof text)
        return error_set(err, ERROR_PROTOCOL, EMSGSIZE, "an answer's head");
    memcpy(text, door->in.data, length);
    text[length] = '\0';
    consume(door, length);
    *ret_head = (struct head){0};
    if (strncmp(text, "HTTP/1.1 ", 9) != 0)
        return error_set(err, ERROR_PROTOCOL, EBADMSG, "no HTTP/1.1 answer");
    door->status = (int)strtol(text + 9, NULL, 10);
    for (char *line = strtok_r(text, "\r\n", &save); line != NULL; line = strtok_r(NULL, "\r\n", &save)) {
        if (strncasecmp(line, "content-length:", 15) == 0)
            ret_head->length = strtoull(line + 15, NULL, 10);
        if (strcasecmp(line, "transfer-encoding: chunked") == 0)
            ret_head->chunked = true;
    }
    return 0;
}

/* `keep` false: only counted. */
static int take_bytes(struct door *door, uint64_t count, bool keep, struct error *err)
{
    while (count > 0) {
        int r = door->in.length == 0 ? receive_more(door, err) : 0;
        if (r < 0)
            return r;
        size_t now = door->in.length < count ? door->in.length : (size_t)count;
        if (keep && (r = buf_append(&door->body, door->in.data, now)) < 0)
            return error_set(err, ERROR_PROTOCOL, -r, "an answer's body");
        consume(door, now);
        count -= now;
    }
    return 0;
}

static int read_body(struct door *door, const struct head *head, bool keep, uint64_t *ret_bytes, struct error *err)
{
    uint64_t total = 0;
    int r = 0;

    door->body.length = 0;
    if (!head->chunked) {
        *ret_bytes = head->length;
        return take_bytes(door, head->length, keep, err);
    }
    for (uint64_t size = 1; r == 0 && size > 0; total += size) {
        size_t line;
        r = take_until(door, "\r\n", &line, err);
        if (r < 0)
            return r;
        size = strtoull((const char *)door->in.data, NULL, 16);
        consume(door, line);
        r = take_bytes(door, size, keep, err);
        if (r == 0)
            r = take_bytes(door, 2, false, err);
    }
    *ret_bytes = total;
    return r;
}

static int send_call(struct door *door, const char *method, const char *path, const char *accept, const char *json,
                     struct error *err)
{
    char text[8192];
    int n = snprintf(text, sizeof text,
                     "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\nAccept: %s\r\n"
                     "%sContent-Length: %zu\r\n\r\n%s",
                     method, path, door->key, accept, json != NULL ? "Content-Type: application/json\r\n" : "",
                     json != NULL ? strlen(json) : 0, json != NULL ? json : "");

    if (n < 0 || (size_t)n >= sizeof text)
        return error_set(err, ERROR_INVALID, EMSGSIZE, "a call");
    int r = fd_write_all(door->fd, text, (size_t)n);
    return r < 0 ? error_set(err, ERROR_SYSTEM, -r, "sending a call") : 0;
}

int door_call(struct door *door, const char *method, const char *path, const char *json, int status, struct error *err)
{
    struct head head;
    uint64_t bytes;
    int r = send_call(door, method, path, "application/json", json, err);

    if (r == 0)
        r = read_head(door, &head, err);
    if (r == 0)
        r = read_body(door, &head, true, &bytes, err);
    if (r == 0 && door->status != status)
        r = error_set(err, ERROR_PROTOCOL, EPROTO, "%s %s answered %d: %.*s", method, path, door->status,
                      (int)(door->body.length < 200 ? door->body.length : 200), (const char *)door->body.data);
    return r;
}

int door_count(struct door *door, const char *path, uint64_t *ret_bytes, struct error *err)
{
    struct head head;
    int r = send_call(door, "GET", path, "application/octet-stream", NULL, err);

    if (r == 0)
        r = read_head(door, &head, err);
    if (r == 0 && door->status != 200)
        r = error_set(err, ERROR_PROTOCOL, EPROTO, "GET %s answered %d", path, door->status);
    return r < 0 ? r : read_body(door, &head, false, ret_bytes, err);
}

int door_word(const struct door *door, const char *name, char *word, size_t size, struct error *err)
{
    char key[64];
    int n = snprintf(key, sizeof key, "\"%s\":", name);
    const char *at = door->body.length > 0 ? memmem(door->body.data, door->body.length, key, (size_t)n) : NULL;
    const char *end = (const char *)door->body.data + door->body.length;

    at = at != NULL ? memchr(at + n, '"', (size_t)(end - at - n)) : NULL;
    const char *last = at != NULL ? memchr(at + 1, '"', (size_t)(end - at - 1)) : NULL;
    if (last == NULL || (size_t)(last - at) > size)
        return error_set(err, ERROR_PROTOCOL, EBADMSG, "no %s in an answer", name);
    memcpy(word, at + 1, (size_t)(last - at - 1));
    word[last - at - 1] = '\0';
    return 0;
}
