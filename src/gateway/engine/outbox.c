#include "gateway/engine/outbox.h"

#include "base/cleanup.h"
#include "base/fd.h"
#include "wire/link.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

struct outbox_frame {
    struct outbox_frame *next;
    int fd;
    uint32_t length;
    uint8_t data[];
};

void outbox_init(struct outbox *outbox, size_t cap)
{
    *outbox = (struct outbox){.cap = cap};
}

static void drop_first(struct outbox *outbox)
{
    struct outbox_frame *frame = outbox->first;

    outbox->first = frame->next;
    if (outbox->first == NULL)
        outbox->last = NULL;
    outbox->bytes -= frame->length;
    close_fd(&frame->fd);
    free(frame);
}

void outbox_release(struct outbox *outbox)
{
    while (outbox->first != NULL)
        drop_first(outbox);
}

static int keep(struct outbox *outbox, const uint8_t *data, size_t length, int fd)
{
    if (length > outbox->cap - outbox->bytes)
        return -ENOBUFS;
    struct outbox_frame *frame = malloc(sizeof *frame + length);
    if (frame == NULL)
        return -ENOMEM;
    *frame = (struct outbox_frame){.fd = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0), .length = (uint32_t)length};
    if (fd >= 0 && frame->fd < 0) {
        free(frame);
        return -errno;
    }
    memcpy(frame->data, data, length);
    if (outbox->last != NULL)
        outbox->last->next = frame;
    else
        outbox->first = frame;
    outbox->last = frame;
    outbox->bytes += length;
    return 1;
}

int outbox_keep(struct outbox *outbox, const struct wire_message *message, int fd)
{
    uint8_t data[WIRE_FRAME_MAX];
    int length = wire_encode(message, data, sizeof data);

    return length < 0 ? length : keep(outbox, data, (size_t)length, fd);
}

int outbox_send(struct outbox *outbox, int socket, const struct wire_message *message, int fd)
{
    int r = outbox->first != NULL ? -EAGAIN : link_send(socket, message, &fd, fd >= 0 ? 1 : 0);

    return r == -EAGAIN ? outbox_keep(outbox, message, fd) : r;
}

int outbox_flush(struct outbox *outbox, int socket, unsigned most, unsigned *ret_sent)
{
    *ret_sent = 0;
    while (outbox->first != NULL && *ret_sent < most) {
        const struct outbox_frame *frame = outbox->first;
        int r = fd_send(socket, frame->data, frame->length, &frame->fd, frame->fd >= 0 ? 1 : 0);
        if (r < 0)
            return r;
        drop_first(outbox);
        ++*ret_sent;
    }
    return 0;
}
