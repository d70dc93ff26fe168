#include "gateway/net/stream.h"

#include <linux/sockios.h>
#include <string.h>
#include <sys/ioctl.h>

enum { KEEP_ROOM = 16 << 10 }; /* of a buffer that was emptied */

static void end(struct stream *stream, int error)
{
    if (stream->has_ended || stream->is_closing)
        return;
    stream->has_ended = true;
    stream->events->end(stream, error);
}

static void on_closed(uv_handle_t *handle)
{
    struct stream *stream = handle->data;

    buf_release(&stream->sending);
    buf_release(&stream->waiting);
    tls_session_free(stream->tls);
    stream->tls = NULL;
    stream->events->closed(stream);
}

void stream_close(struct stream *stream)
{
    if (stream->is_closing)
        return;
    stream->is_closing = true;
    uv_close(&stream->uv.handle, on_closed);
}

static int open_handle(struct stream *stream, uv_stream_t *listener)
{
    /* On a handle of memory neither fails. */
    if (listener->type == UV_TCP)
        ignore_result(uv_tcp_init(listener->loop, &stream->uv.tcp));
    else
        ignore_result(uv_pipe_init(listener->loop, &stream->uv.pipe, 0));
    stream->uv.handle.data = stream;
    int r = uv_accept(listener, &stream->uv.stream);
    if (r == 0 && listener->type == UV_TCP)
        r = uv_tcp_nodelay(&stream->uv.tcp, 1);
    return r;
}

int stream_accept(struct stream *stream, uv_stream_t *listener, struct tls_context *tls, struct stream_shared *shared,
                  const struct stream_events *events, struct peer *ret_peer)
{
    uv_os_fd_t fd = -1;

    *stream = (struct stream){.events = events,
                              .shared = shared,
                              .sending = buf_init(STREAM_UNSENT_MOST),
                              .waiting = buf_init(STREAM_UNSENT_MOST)};
    int r = open_handle(stream, listener);
    if (r == 0)
        r = uv_fileno(&stream->uv.handle, &fd);
    if (r == 0)
        r = peer_get(fd, ret_peer);
    if (r < 0 || tls == NULL)
        return r;
    ret_peer->is_tls = true;
    stream->tls = tls_session_new(tls);
    return stream->tls == NULL ? -ENOMEM : 0;
}

size_t stream_unsent(const struct stream *stream)
{
    return uv_stream_get_write_queue_size(&stream->uv.stream) + stream->waiting.length;
}

uint64_t stream_sent(const struct stream *stream)
{
    uv_os_fd_t fd = -1;
    int queued = 0;

    if (uv_fileno(&stream->uv.handle, &fd) < 0 || ioctl(fd, SIOCOUTQ, &queued) < 0 || queued < 0)
        queued = 0;
    return stream->given - stream_unsent(stream) - (uint64_t)queued;
}

static void on_shut(uv_shutdown_t *shutdown, int status)
{
    /* A peer that has gone already is found out by reading. */
    (void)shutdown, (void)status;
}

/* uv does it after what it has to write; it must have all of that. */
static void shut_after_last(struct stream *stream)
{
    if (!stream->is_shut || stream->is_closing || stream->waiting.length > 0 || stream->has_shutdown)
        return;
    stream->has_shutdown = true;
    ignore_result(uv_shutdown(&stream->shutdown, &stream->uv.stream, on_shut));
}

static void start_writing(struct stream *stream);

static void on_written(uv_write_t *write, int status)
{
    struct stream *stream = write->handle->data;

    stream->is_writing = false;
    if (stream->is_closing)
        return;
    if (status < 0) {
        stream->has_ended = false; /* the peer's end may have been told; that it takes nothing is news */
        end(stream, status);
        return;
    }
    stream->shared->bytes_out += stream->sending.length;
    stream->sending.length = 0;
    if (stream->sending.room > KEEP_ROOM)
        buf_release(&stream->sending);
    start_writing(stream);
    shut_after_last(stream);
    stream->events->written(stream);
}

static void start_writing(struct stream *stream)
{
    if (stream->is_writing || stream->waiting.length == 0 || stream->is_closing)
        return;
    struct buf emptied = stream->sending;
    stream->sending = stream->waiting;
    stream->waiting = emptied;
    uv_buf_t buf = {.base = (char *)stream->sending.data, .len = stream->sending.length};
    stream->is_writing = true;
    int r = uv_write(&stream->write, &stream->uv.stream, &buf, 1, on_written);
    if (r < 0) {
        stream->is_writing = false;
        stream->has_ended = false;
        end(stream, r);
    }
}

/* Keep what is behind the first `sent` bytes. */
static int keep(struct stream *stream, const uv_buf_t *bufs, unsigned count, size_t sent)
{
    for (unsigned i = 0; i < count; i++) {
        size_t skip = sent < bufs[i].len ? sent : bufs[i].len;
        sent -= skip;
        int r = bufs[i].len > skip ? buf_append(&stream->waiting, bufs[i].base + skip, bufs[i].len - skip) : 0;
        if (r < 0)
            return r;
        stream->given += bufs[i].len;
    }
    start_writing(stream);
    return 0;
}

static int write_plain(struct stream *stream, const uv_buf_t *bufs, unsigned count)
{
    int n = stream->is_writing ? UV_EAGAIN : uv_try_write(&stream->uv.stream, bufs, count);

    if (n < 0 && n != UV_EAGAIN)
        return n;
    size_t sent = n > 0 ? (size_t)n : 0;
    stream->shared->bytes_out += sent;
    return keep(stream, bufs, count, sent);
}

/* What TLS has to say to the peer. */
static int flush_tls(struct stream *stream)
{
    const void *data;
    size_t length = tls_pending(stream->tls, &data);

    if (length == 0)
        return 0;
    uv_buf_t buf = {.base = (char *)(uintptr_t)data, .len = length};
    int r = write_plain(stream, &buf, 1);
    tls_taken(stream->tls, length);
    return r;
}

int stream_write(struct stream *stream, const uv_buf_t *bufs, unsigned count)
{
    if (stream->is_closing || stream->is_shut)
        return -EPIPE;
    if (stream->tls == NULL)
        return write_plain(stream, bufs, count);
    for (unsigned i = 0; i < count; i++) {
        int r = tls_write(stream->tls, bufs[i].base, bufs[i].len);
        if (r < 0)
            return r;
    }
    return flush_tls(stream);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct stream *stream = handle->data;

    (void)suggested;
    *buf = (uv_buf_t){.base = stream->shared->input, .len = sizeof stream->shared->input};
}

static void read_tls(struct stream *stream, const char *data, size_t length)
{
    bool was_ready = tls_is_ready(stream->tls);
    char *plain = stream->shared->plain;
    int r = tls_put(stream->tls, data, length);

    while (r == 0 && !stream->is_closing) {
        int n = tls_read(stream->tls, plain, sizeof stream->shared->plain);
        if (n <= 0) {
            r = n;
            break;
        }
        stream->events->data(stream, (const uint8_t *)plain, (size_t)n);
    }
    if (stream->is_closing)
        return;
    int flushed = flush_tls(stream);
    if (r == -EPROTO && !was_ready)
        stream->shared->tls_failed++;
    if (r == -EPIPE)
        end(stream, 0);
    else if (r < 0 || flushed < 0)
        end(stream, r < 0 ? r : flushed);
}

static void on_read(uv_stream_t *handle, ssize_t n, const uv_buf_t *buf)
{
    struct stream *stream = handle->data;

    if (n == 0)
        return;
    if (n < 0) {
        stream->is_reading = false;
        ignore_result(uv_read_stop(handle));
        end(stream, n == UV_EOF ? 0 : (int)n);
        return;
    }
    stream->shared->bytes_in += (uint64_t)n;
    if (stream->tls != NULL)
        read_tls(stream, buf->base, (size_t)n);
    else
        stream->events->data(stream, (const uint8_t *)buf->base, (size_t)n);
}

void stream_read_start(struct stream *stream)
{
    if (stream->is_reading || stream->is_closing || stream->has_ended)
        return;
    int r = uv_read_start(&stream->uv.stream, on_alloc, on_read);
    stream->is_reading = r == 0;
    if (r < 0)
        end(stream, r);
}

void stream_read_stop(struct stream *stream)
{
    if (!stream->is_reading)
        return;
    ignore_result(uv_read_stop(&stream->uv.stream));
    stream->is_reading = false;
}

void stream_shut(struct stream *stream)
{
    if (stream->is_shut || stream->is_closing)
        return;
    if (stream->tls != NULL) {
        tls_end(stream->tls);
        ignore_result(flush_tls(stream));
    }
    stream->is_shut = true;
    shut_after_last(stream);
}
