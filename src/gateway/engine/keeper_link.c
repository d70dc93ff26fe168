#include "gateway/engine/keeper_link.h"

#include "base/cleanup.h"
#include "base/fd.h"
#include "wire/link.h"

enum { OUTBOX_CAP = 16 << 20, MESSAGES_AT_ONCE = 64 };

static void ready(uv_poll_t *poll, int status, int events);

static void watch(struct keeper_link *link)
{
    bool wants_room = link->outbox.first != NULL && link->in_flight < KEEPER_LINK_AT_ONCE;

    if (wants_room == link->is_watching_room)
        return;
    link->is_watching_room = wants_room;
    ignore_result(uv_poll_start(&link->poll, UV_READABLE | (wants_room ? UV_WRITABLE : 0), ready));
}

static void flush(struct keeper_link *link)
{
    unsigned sent = 0;

    if (!link->is_open)
        return;
    if (link->in_flight < KEEPER_LINK_AT_ONCE) {
        /* What fails now is told by the end of the conversation. */
        ignore_result(outbox_flush(&link->outbox, link->fd, KEEPER_LINK_AT_ONCE - link->in_flight, &sent));
        link->in_flight += sent;
    }
    watch(link);
}

int keeper_link_ask(struct keeper_link *link, const struct wire_message *message, int fd)
{
    if (!link->is_open)
        return -EPIPE;
    if (link->in_flight >= KEEPER_LINK_AT_ONCE) {
        int r = outbox_keep(&link->outbox, message, fd);
        return r < 0 ? r : 0;
    }
    int r = outbox_send(&link->outbox, link->fd, message, fd);
    link->in_flight += r == 0;
    watch(link);
    return r < 0 ? r : 0;
}

void keeper_link_answered(struct keeper_link *link)
{
    link->in_flight -= link->in_flight > 0;
    flush(link);
}

static void lose(struct keeper_link *link)
{
    if (!link->is_open)
        return;
    link->is_open = false;
    ignore_result(uv_poll_stop(&link->poll));
    link->lost(link->owner);
}

static void hear(struct keeper_link *link)
{
    for (int i = 0; i < MESSAGES_AT_ONCE && link->is_open; i++) {
        struct wire_message message;
        int fds[FD_PASS_MAX];
        size_t fd_count = 0;
        int r = link_receive(link->fd, WIRE_BY_KEEPER, WIRE_IN_RUNNING, link->frame, &message, fds, &fd_count);
        if (r == -EAGAIN || r == -EINTR)
            return;
        if (r <= 0) {
            lose(link);
            return;
        }
        link->heard(link->owner, &message, fds, fd_count);
    }
}

static void ready(uv_poll_t *poll, int status, int events)
{
    struct keeper_link *link = (struct keeper_link *)((char *)poll - offsetof(struct keeper_link, poll));

    if (status < 0 || (events & UV_READABLE) != 0)
        hear(link);
    if (status < 0)
        lose(link);
    if ((events & UV_WRITABLE) != 0)
        flush(link);
}

int keeper_link_open(struct keeper_link *link, uv_loop_t *loop, int fd)
{
    int r = uv_poll_init(loop, &link->poll, fd);

    if (r < 0)
        return r;
    link->fd = fd;
    link->is_open = true;
    link->is_watching_room = false;
    link->in_flight = 0;
    outbox_init(&link->outbox, OUTBOX_CAP);
    return uv_poll_start(&link->poll, UV_READABLE, ready);
}

void keeper_link_close(struct keeper_link *link, uv_close_cb closed)
{
    link->is_open = false;
    outbox_release(&link->outbox);
    ignore_result(uv_poll_stop(&link->poll));
    uv_close((uv_handle_t *)&link->poll, closed);
    close_fd(&link->fd);
}
