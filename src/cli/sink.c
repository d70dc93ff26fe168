#include "cli/sink.h"

#include "wire/wire.h"

#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ACK_EVERY = WIRE_WINDOW / 16 };

void sink_init(struct sink *sink, int fd, size_t collect_cap)
{
    struct stat st;

    *sink = (struct sink){.fd = fd, .waiting = buf_init(WIRE_WINDOW), .collected = buf_init(collect_cap)};
    if (fd >= 0) {
        sink->broken = fstat(fd, &st) < 0;
        sink->error = sink->broken && errno != EBADF ? errno : 0; /* one that is closed is for nobody to read */
        sink->is_file = !sink->broken && S_ISREG(st.st_mode);
    }
}

void sink_release(struct sink *sink)
{
    buf_release(&sink->waiting);
    buf_release(&sink->collected);
}

/* How much of it the descriptor takes without blocking; a reader that has gone takes everything. */
static size_t write_some(struct sink *sink, const uint8_t *data, size_t length)
{
    size_t written = 0;

    while (written < length && !sink->broken) {
        struct pollfd ready = {.fd = sink->fd, .events = POLLOUT};
        size_t part = length - written;
        if (!sink->is_file) {
            /* A pipe that polls writable takes PIPE_BUF bytes without blocking; no more is promised. */
            if (poll(&ready, 1, 0) != 1)
                return written;
            part = part < PIPE_BUF ? part : PIPE_BUF;
        }
        ssize_t n = write(sink->fd, data + written, part);
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            return written;
        if (n < 0) {
            sink->broken = true;
            sink->error = errno != EPIPE ? errno : 0;
        } else
            written += (size_t)n;
    }
    return sink->broken ? length : written;
}

int sink_take(struct sink *sink, uint64_t offset, const void *data, size_t length)
{
    const uint8_t *at = data;

    if (offset != sink->received)
        return -EBADMSG;
    sink->received += length;
    if (sink->fd < 0) {
        sink->done = sink->received;
        return buf_append(&sink->collected, data, length);
    }
    if (sink->waiting.length == 0) {
        size_t n = write_some(sink, at, length);
        sink->done += n;
        at += n;
        length -= n;
    }
    return buf_append(&sink->waiting, at, length);
}

void sink_flush(struct sink *sink)
{
    struct buf *waiting = &sink->waiting;
    size_t n = waiting->length > 0 ? write_some(sink, waiting->data, waiting->length) : 0;

    if (n == 0)
        return;
    sink->done += n;
    waiting->length -= n;
    memmove(waiting->data, waiting->data + n, waiting->length);
}

bool sink_ack_due(const struct sink *sink)
{
    return sink->done - sink->acked >= ACK_EVERY;
}
