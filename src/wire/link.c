#include "wire/link.h"

#include "base/fd.h"

enum { SMALL_FRAME = 2048 };

/* Apart, so that a small message does not pay for probing 64 KiB of stack. */
__attribute__((noinline)) static int send_large(int socket, const struct wire_message *message, const int *fds,
                                                size_t fd_count)
{
    uint8_t frame[WIRE_FRAME_MAX];
    int length = wire_encode(message, frame, sizeof frame);

    return length < 0 ? length : fd_send(socket, frame, (size_t)length, fds, fd_count);
}

int link_send(int socket, const struct wire_message *message, const int *fds, size_t fd_count)
{
    uint8_t frame[SMALL_FRAME];
    int length = wire_encode(message, frame, sizeof frame);

    if (length < 0)
        return send_large(socket, message, fds, fd_count);
    return fd_send(socket, frame, (size_t)length, fds, fd_count);
}

int link_receive(int socket, enum wire_sender sender, enum wire_state state, uint8_t *frame,
                 struct wire_message *ret_message, int *fds, size_t *ret_fd_count)
{
    size_t fd_count = 0;
    ssize_t n = fd_receive(socket, frame, WIRE_FRAME_MAX, fds, fds != NULL ? FD_PASS_MAX : 0, &fd_count);

    /* A peer that ended with something unread resets the connection; what it said before is still there. */
    if (n == -ECONNRESET)
        n = fd_receive(socket, frame, WIRE_FRAME_MAX, fds, fds != NULL ? FD_PASS_MAX : 0, &fd_count);
    if (n == -ECONNRESET)
        return 0;
    if (n == 0 && fd_count > 0) {
        fd_close_many(fds, fd_count);
        return -EBADMSG;
    }
    if (n <= 0)
        return (int)n;
    int r = wire_decode(frame, (size_t)n, ret_message);
    if (r == 0 && !wire_permits(ret_message->type, sender, state, fd_count))
        r = -EBADMSG;
    if (r < 0) {
        if (fds != NULL)
            fd_close_many(fds, fd_count);
        return r;
    }
    if (ret_fd_count != NULL)
        *ret_fd_count = fd_count;
    return 1;
}
