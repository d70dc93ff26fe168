#include "airlock/dial.h"

#include "base/cleanup.h"

#include <stdlib.h>
#include <string.h>

enum { NEXT_MS = 250, LIMIT_MS = 20000 };

struct attempt {
    uv_poll_t poll;
    struct dial *dial;
    int fd;
    bool is_open; /* its poll handle, too */
};

struct dial {
    uv_timer_t timer;
    struct attempt attempts[DIAL_ADDRESSES_MAX];
    struct address addresses[DIAL_ADDRESSES_MAX];
    size_t count;
    size_t next;
    size_t handles;
    uint16_t port;
    int receive_bytes; /* 0: as the kernel likes */
    int error;
    uint64_t deadline_ms;
    dial_done *done;
    void *data;
    bool is_ending;
};

static void on_closed(uv_handle_t *handle)
{
    struct dial *dial = handle->data;

    if (--dial->handles == 0)
        free(dial);
}

static void end_attempt(struct attempt *attempt, bool keep_fd)
{
    if (!attempt->is_open)
        return;
    attempt->is_open = false;
    (void)uv_poll_stop(&attempt->poll);
    attempt->poll.data = attempt->dial;
    uv_close((uv_handle_t *)&attempt->poll, on_closed);
    if (!keep_fd)
        close_fd(&attempt->fd);
}

void dial_set_receive_bytes(struct dial *dial, int bytes)
{
    dial->receive_bytes = bytes;
}

void dial_cancel(struct dial *dial)
{
    if (dial == NULL || dial->is_ending)
        return;
    dial->is_ending = true;
    for (size_t i = 0; i < dial->count; i++)
        end_attempt(&dial->attempts[i], false);
    (void)uv_timer_stop(&dial->timer);
    uv_close((uv_handle_t *)&dial->timer, on_closed);
}

static void finish(struct dial *dial, int fd)
{
    dial_done *done = dial->done;
    void *data = dial->data;

    dial_cancel(dial);
    done(data, fd);
}

static bool is_any_open(const struct dial *dial)
{
    for (size_t i = 0; i < dial->next; i++) {
        if (dial->attempts[i].is_open)
            return true;
    }
    return false;
}

static void on_timer(uv_timer_t *timer);

static void on_connected(uv_poll_t *poll, int status, int events)
{
    struct attempt *attempt = poll->data;
    struct dial *dial = attempt->dial;
    int error = 0;
    socklen_t size = sizeof error;

    (void)status; /* libuv knows only that there is an error, not which */
    (void)events;
    if (getsockopt(attempt->fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
        error = errno;
    if (error == 0) {
        int fd = attempt->fd;
        end_attempt(attempt, true);
        finish(dial, fd);
        return;
    }
    dial->error = -error;
    end_attempt(attempt, false);
    /* No need to wait for the next one's turn. */
    (void)uv_timer_start(&dial->timer, on_timer, 0, 0);
}

static int begin_attempt(struct dial *dial)
{
    struct attempt *attempt = &dial->attempts[dial->next];
    struct sockaddr_storage to;
    socklen_t length = address_to_socket(&dial->addresses[dial->next], dial->port, &to);

    dial->next++;
    attempt->dial = dial;
    attempt->fd = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (attempt->fd < 0)
        return -errno;
    if (dial->receive_bytes > 0)
        (void)setsockopt(attempt->fd, SOL_SOCKET, SO_RCVBUF, &dial->receive_bytes, sizeof dial->receive_bytes);
    if (connect(attempt->fd, (const struct sockaddr *)&to, length) < 0 && errno != EINPROGRESS) {
        int r = -errno;
        close_fd(&attempt->fd);
        return r;
    }
    int r = uv_poll_init(uv_handle_get_loop((uv_handle_t *)&dial->timer), &attempt->poll, attempt->fd);
    if (r < 0) {
        close_fd(&attempt->fd);
        return r;
    }
    attempt->poll.data = attempt;
    attempt->is_open = true;
    dial->handles++;
    return uv_poll_start(&attempt->poll, UV_WRITABLE, on_connected);
}

static void on_timer(uv_timer_t *timer)
{
    struct dial *dial = timer->data;
    uint64_t now_ms = uv_now(uv_handle_get_loop((uv_handle_t *)timer));

    if (now_ms >= dial->deadline_ms) {
        finish(dial, -ETIMEDOUT);
        return;
    }
    while (dial->next < dial->count) {
        int r = begin_attempt(dial);
        if (r == 0) {
            (void)uv_timer_start(&dial->timer, on_timer, NEXT_MS, 0);
            return;
        }
        dial->error = r;
    }
    if (!is_any_open(dial))
        finish(dial, dial->error);
    else
        (void)uv_timer_start(&dial->timer, on_timer, dial->deadline_ms - now_ms, 0);
}

int dial_start(uv_loop_t *loop, const struct address *addresses, size_t count, uint16_t port, dial_done *done,
               void *data, struct dial **ret_dial)
{
    struct dial *dial = calloc(1, sizeof *dial);

    if (dial == NULL)
        return -ENOMEM;
    dial->count = count < DIAL_ADDRESSES_MAX ? count : DIAL_ADDRESSES_MAX;
    memcpy(dial->addresses, addresses, dial->count * sizeof *addresses);
    dial->port = port;
    dial->done = done;
    dial->data = data;
    dial->error = -ENETUNREACH;
    dial->handles = 1;
    dial->deadline_ms = uv_now(loop) + LIMIT_MS;
    (void)uv_timer_init(loop, &dial->timer);
    dial->timer.data = dial;
    (void)uv_timer_start(&dial->timer, on_timer, 0, 0);
    *ret_dial = dial;
    return 0;
}
