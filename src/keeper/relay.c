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

enum {
    PIECE_MAX = 2048,
    ESCAPED_SIZE = 8,
    FINISH_MS = 500,
    BURST_BYTES = 2 << 20,
    BYTES_PER_MS = 256,
    LINE_COST = 64,        /* beside its bytes */
    AGAIN_BYTES = 1 << 18, /* once lines were left out, there must be room for more than one */
    NOTICE_SIZE = 160,
};

static const char json_end[] = "\"}";

int relay_open(struct relay *relay, const char *source, int to_fd, int *ret_write_fd, struct error *err)
{
    int ends[2];

    relay->fd = -1;
    relay->source = source;
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

/* Who said it comes first, where nothing that was said can come before it. */
static size_t mark(const struct relay *relay, char *text, size_t size)
{
    int n = relay->format == LOG_FORMAT_JSON ? snprintf(text, size, "{\"source\":\"%s\",\"line\":\"", relay->source)
                                             : snprintf(text, size, "%s: ", relay->source);

    return n > 0 && (size_t)n < size ? (size_t)n : 0;
}

static void hand_on(const struct relay *relay, char *text, size_t length)
{
    if (relay->format == LOG_FORMAT_JSON) {
        memcpy(text + length, json_end, sizeof json_end - 1);
        length += sizeof json_end - 1;
    }
    text[length++] = '\n';
    ignore_result(fd_write_all(relay->to_fd, text, length)); /* there is nobody else to tell */
}

static void tell_left_out(struct relay *relay)
{
    char text[NOTICE_SIZE];
    size_t length = mark(relay, text, sizeof text);
    int n = snprintf(text + length, sizeof text - length - sizeof json_end, "%llu lines left out: it says too much",
                     (unsigned long long)relay->left_out);

    hand_on(relay, text, length + (n > 0 ? (size_t)n : 0));
    relay->left_out = 0;
}

/* A full log costs the machine its disk, and hides what else is in it. */
static bool has_room(struct relay *relay)
{
    uint64_t now_ns = clock_now_ns();
    uint64_t cost = relay->length + LINE_COST;
    uint64_t earned = (now_ns - relay->filled_ns) / MS_NS * BYTES_PER_MS;

    if (earned > 0) {
        relay->room = earned < BURST_BYTES - relay->room ? relay->room + earned : BURST_BYTES;
        relay->filled_ns = now_ns;
    }
    if (relay->room < cost || (relay->left_out > 0 && relay->room < AGAIN_BYTES))
        return false;
    relay->room -= cost;
    return true;
}

static void end_line(struct relay *relay)
{
    if (relay->length == 0)
        relay->length = mark(relay, relay->line, sizeof relay->line);
    if (has_room(relay)) {
        if (relay->left_out > 0)
            tell_left_out(relay);
        hand_on(relay, relay->line, relay->length);
    } else {
        relay->left_out++;
    }
    explicit_bzero(relay->line, relay->length);
    relay->length = 0;
}

static void add(struct relay *relay, const char *text, size_t length)
{
    if (relay->length + length + sizeof json_end > sizeof relay->line)
        end_line(relay);
    if (relay->length == 0)
        relay->length = mark(relay, relay->line, sizeof relay->line);
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

static void add_escaped(struct relay *relay, uint8_t byte)
{
    char escaped[ESCAPED_SIZE] = "\\";
    size_t start = relay->format == LOG_FORMAT_JSON ? 1 : 0;

    (void)snprintf(escaped + start, sizeof escaped - start, "\\x%02x", byte);
    add(relay, escaped, strlen(escaped));
}

static void add_shown(struct relay *relay, const char *text, size_t length)
{
    bool is_json = relay->format == LOG_FORMAT_JSON;

    if (is_json && *text == '\t')
        add(relay, "\\t", 2);
    else if (is_json && (*text == '"' || *text == '\\'))
        add(relay, (const char[]){'\\', *text}, 2);
    else
        add(relay, text, length);
}

static void take(struct relay *relay, const uint8_t *text, size_t length)
{
    size_t n = 0;

    for (size_t at = 0; at < length; at += n) {
        n = utf8_sequence(text + at, length - at);
        if (text[at] == '\n') {
            end_line(relay);
        } else if (is_shown(text + at, n)) {
            add_shown(relay, (const char *)text + at, n);
        } else {
            add_escaped(relay, text[at]);
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
    if (relay->left_out > 0)
        tell_left_out(relay);
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
        relay->length = relay->rest_length = relay->left_out = 0; /* it would wait for good */
    if (relay->fd >= 0)
        finish(relay);
    relay->is_stuck = false;
}
