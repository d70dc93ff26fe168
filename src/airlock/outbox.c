#include "airlock/outbox.h"

#include "base/error.h"
#include "base/fd.h"
#include "wire/link.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

enum { ANSWERS_MAX = 64, RECORDS_MAX = 4096, SHARE_MAX = 512 };

struct letter {
    struct letter *next;
    uint64_t sandbox;
    enum outbox_class class;
    size_t length;
    uint8_t frame[];
};

int outbox_init(struct outbox *outbox, uv_loop_t *loop, int fd, outbox_emptied *emptied, void *data)
{
    /* A poll handle has a descriptor to itself, and somebody else reads from this one. */
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);

    *outbox = (struct outbox){.fd = copy, .emptied = emptied, .data = data};
    outbox->poll.data = outbox;
    return copy < 0 ? -errno : uv_poll_init(loop, &outbox->poll, copy);
}

bool outbox_has_room(const struct outbox *outbox)
{
    return outbox->answers < ANSWERS_MAX;
}

static size_t share_of(const struct outbox *outbox, uint64_t sandbox)
{
    size_t count = 0;

    for (const struct letter *letter = outbox->first; letter != NULL; letter = letter->next)
        count += letter->sandbox == sandbox;
    return count;
}

static bool may_keep(const struct outbox *outbox, uint64_t sandbox, enum outbox_class class)
{
    if (class == OUTBOX_ANSWER)
        return outbox_has_room(outbox);
    return outbox->count - outbox->answers < RECORDS_MAX && share_of(outbox, sandbox) < SHARE_MAX;
}

static void drop_first(struct outbox *outbox)
{
    struct letter *letter = outbox->first;

    outbox->first = letter->next;
    outbox->count--;
    outbox->answers -= letter->class == OUTBOX_ANSWER;
    free(letter);
}

static void on_writable(uv_poll_t *poll, int status, int events)
{
    struct outbox *outbox = poll->data;
    int r = 0;

    (void)status; /* a client that is gone is noticed by who reads from it */
    (void)events;
    while (r == 0 && outbox->first != NULL) {
        r = fd_send(outbox->fd, outbox->first->frame, outbox->first->length, NULL, 0);
        if (r == 0)
            drop_first(outbox);
    }
    if (r == -EAGAIN)
        return;
    outbox->is_watching = false;
    (void)uv_poll_stop(poll);
    outbox->emptied(outbox->data);
}

static int keep(struct outbox *outbox, uint64_t sandbox, const struct wire_message *message, enum outbox_class class)
{
    uint8_t frame[2048];
    int length = wire_encode(message, frame, sizeof frame);
    struct letter *letter = length < 0 ? NULL : malloc(sizeof *letter + (size_t)length);

    if (letter == NULL)
        return length < 0 ? length : -ENOMEM;
    *letter = (struct letter){.sandbox = sandbox, .class = class, .length = (size_t)length};
    memcpy(letter->frame, frame, (size_t)length);
    if (outbox->first == NULL)
        outbox->first = letter;
    else
        outbox->last->next = letter;
    outbox->last = letter;
    outbox->count++;
    outbox->answers += class == OUTBOX_ANSWER;
    if (!outbox->is_watching)
        outbox->is_watching = uv_poll_start(&outbox->poll, UV_WRITABLE, on_writable) == 0;
    return 0;
}

int outbox_send(struct outbox *outbox, uint64_t sandbox, const struct wire_message *message, enum outbox_class class)
{
    int r = outbox->first == NULL ? link_send(outbox->fd, message, NULL, 0) : -EAGAIN;

    if (r != -EAGAIN || class == OUTBOX_NOTE)
        return r;
    return may_keep(outbox, sandbox, class) ? keep(outbox, sandbox, message, class) : -ENOBUFS;
}
