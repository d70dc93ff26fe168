#include "gateway/engine/guest_link.h"

#include "base/cleanup.h"
#include "wire/link.h"

enum { OUTBOX_CAP = 4 << 20, FRAMES_AT_ONCE = 16, FRAMES_LEFT_MAX = 65536 };

static void ready(uv_poll_t *poll, int status, int events);

static int start(struct guest_link *link)
{
    return uv_poll_start(&link->poll, (link->is_held ? 0 : UV_READABLE) | (link->is_watching_room ? UV_WRITABLE : 0),
                         ready);
}

static void watch(struct guest_link *link)
{
    bool wants_room = link->outbox.first != NULL;

    if (!link->is_open || wants_room == link->is_watching_room)
        return;
    link->is_watching_room = wants_room;
    link->full_since_ms = wants_room ? uv_now(link->poll.loop) : 0;
    ignore_result(start(link));
}

void guest_link_hold(struct guest_link *link, bool is_held)
{
    link->is_held = is_held;
    if (link->is_open)
        ignore_result(start(link));
}

int guest_link_say(struct guest_link *link, const struct wire_message *message)
{
    if (!link->is_open)
        return 0;
    int r = outbox_send(&link->outbox, link->fd, message, -1);
    watch(link);
    return r == -ENOBUFS || r == -EMSGSIZE || r == -ENOMEM ? r : 0;
}

void guest_link_stop(struct guest_link *link)
{
    if (!link->is_open)
        return;
    link->is_open = false;
    ignore_result(uv_poll_stop(&link->poll));
    outbox_release(&link->outbox);
}

static void end(struct guest_link *link, int status)
{
    guest_link_stop(link);
    link->ended(link->owner, status);
}

/* 1 when there may be more. */
static int hear_one(struct guest_link *link)
{
    struct wire_message message;
    struct guest_event event;
    int r = link_receive(link->fd, WIRE_BY_GUEST, link->guest.state, link->frame, &message, NULL, NULL);

    if (r == -EAGAIN || r == -EINTR)
        return 0;
    if (r > 0)
        r = guest_hear(&link->guest, &message, &event) < 0 ? -EBADMSG : 1;
    if (r == 1)
        link->heard(link->owner, &event);
    else
        end(link, r == -EBADMSG || r == -EMSGSIZE ? -EBADMSG : 0);
    return r == 1 && link->is_open;
}

void guest_link_drain(struct guest_link *link)
{
    /* It has ended: what is there is what its buffer holds. */
    for (int i = 0; i < FRAMES_LEFT_MAX && link->is_open && hear_one(link) > 0; i++)
        continue;
}

static void flush(struct guest_link *link)
{
    unsigned sent = 0;

    ignore_result(outbox_flush(&link->outbox, link->fd, UINT32_MAX, &sent));
    if (sent > 0 && link->full_since_ms != 0)
        link->full_since_ms = uv_now(link->poll.loop);
    watch(link);
    if (link->outbox.first == NULL)
        link->drained(link->owner);
}

static void ready(uv_poll_t *poll, int status, int events)
{
    struct guest_link *link = (struct guest_link *)((char *)poll - offsetof(struct guest_link, poll));

    if (status < 0) {
        guest_link_drain(link);
        if (link->is_open)
            end(link, 0);
        return;
    }
    if ((events & UV_WRITABLE) != 0)
        flush(link);
    if ((events & UV_READABLE) != 0) {
        for (int i = 0; i < FRAMES_AT_ONCE && link->is_open && hear_one(link) > 0; i++)
            continue;
        if (link->is_open)
            link->heard_all(link->owner);
    }
}

int guest_link_open(struct guest_link *link, uv_loop_t *loop, int fd, uint32_t gateway_start)
{
    int r = uv_poll_init(loop, &link->poll, fd);

    link->fd = fd;
    if (r < 0) {
        close_fd(&link->fd);
        return r;
    }
    link->has_handle = true;
    link->is_open = true;
    link->is_watching_room = false;
    link->is_held = false;
    link->full_since_ms = 0;
    guest_init(&link->guest, gateway_start);
    outbox_init(&link->outbox, OUTBOX_CAP);
    return start(link);
}

void guest_link_close(struct guest_link *link, uv_close_cb closed)
{
    guest_link_stop(link);
    link->has_handle = false;
    uv_close((uv_handle_t *)&link->poll, closed);
    close_fd(&link->fd);
}
