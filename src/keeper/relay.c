#include "keeper/relay.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/utf8.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MS_NS UINT64_C(1000000)

enum { PIECE_MAX = 2048, ESCAPED_LENGTH = 4, FINISH_MS = 500 };

int relay_open(struct relay *relay, int to_fd, int *ret_write_fd, struct error *err)
{
    int ends[2];

    relay->fd = -1;
    relay->to_fd = to_fd;
    relay->is_stuck = false;
    relay->length = relay->rest_length = 0;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_errno(err, "making a pipe for standard error");
    if (fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0) {
        fd_close_many(ends, 2);
        return error_errno(err, "making a pipe for standard error");
    }
    relay->fd = ends[0];
    *ret_write_fd = ends[1];
    return 0;
}

static void end_line(struct relay *relay)
{
    relay->line[relay->length++] = '\n';
    ignore_result(fd_write_all(relay->to_fd, relay->line, relay->length)); /* there is nobody else to tell */
    explicit_bzero(relay->line, relay->length);
    relay->length = 0;
}

static void add(struct relay *relay, const char *text, size_t length)
{
    if (relay->length + length >= sizeof relay->line)
        end_line(relay);
    memcpy(relay->line + relay->length, text, length);
    relay->length += length;
}

/* C1 control characters are two bytes from U+0080 on. */
static bool is_shown(const uint8_t *text, size_t length)
{
    if (length == 1)
        return *text == '\t' || (*text >= ' ' && *text <= '~');
    return length > 0 && (text[0] != 0xc2 || text[1] >= 0xa0);
}

static void take(struct relay *relay, const uint8_t *text, size_t length)
{
    char escaped[ESCAPED_LENGTH + 1];
    size_t n = 0;

    for (size_t at = 0; at < length; at += n) {
        n = utf8_sequence(text + at, length - at);
        if (text[at] == '\n') {
            end_line(relay);
        } else if (is_shown(text + at, n)) {
            add(relay, (const char *)text + at, n);
        } else {
            (void)snprintf(escaped, sizeof escaped, "\\x%02x", text[at]);
            add(relay, escaped, ESCAPED_LENGTH);
            n = 1;
        }
    }
}

static void finish(struct relay *relay)
{
    take(relay, relay->rest, relay->rest_length);
    relay->rest_length = 0;
    if (relay->length > 0)
        end_line(relay);
    close_fd(&relay->fd);
}

/* Whether there may be more. */
static bool step(struct relay *relay, int wait_ms)
{
    struct pollfd room = {.fd = relay->to_fd, .events = POLLOUT};
    uint8_t text[PIECE_MAX];
    size_t had = relay->rest_length;

    relay->is_stuck = poll(&room, 1, wait_ms) < 1;
    if (relay->is_stuck)
        return false;
    ssize_t n = read(relay->fd, text + had, sizeof text - had);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n <= 0) {
        finish(relay);
        return false;
    }
    memcpy(text, relay->rest, had);
    size_t length = had + (size_t)n;
    size_t whole = utf8_cut(text, length);
    take(relay, text, whole);
    relay->rest_length = length - whole;
    memcpy(relay->rest, text + whole, relay->rest_length);
    explicit_bzero(text, length);
    return true;
}

struct pollfd relay_wait(const struct relay *relay)
{
    return relay->is_stuck ? (struct pollfd){.fd = relay->to_fd, .events = POLLOUT}
                           : (struct pollfd){.fd = relay->fd, .events = POLLIN};
}

void relay_some(struct relay *relay)
{
    if (relay->fd >= 0)
        (void)step(relay, 0);
}

void relay_finish(struct relay *relay)
{
    uint64_t until_ns = clock_now_ns() + FINISH_MS * MS_NS;

    if (relay->fd < 0)
        return;
    for (uint64_t now_ns = 0; (now_ns = clock_now_ns()) < until_ns;) {
        if (!step(relay, (int)((until_ns - now_ns) / MS_NS)))
            break;
    }
    if (relay->is_stuck)
        relay->length = relay->rest_length = 0; /* it would wait for good */
    if (relay->fd >= 0)
        finish(relay);
    relay->is_stuck = false;
}
