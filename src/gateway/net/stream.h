/*
 * stream: the bytes of one connection, over TCP or a unix socket, with TLS or without.
 *
 * Embedded in a connection. What can't be written at once is kept, up to a cap. Loop-owned: stream_close(), then
 * `closed` is the last event, and only then may its memory go.
 */
#pragma once

#include "base/buf.h"
#include "gateway/net/peer.h"
#include "gateway/net/tls.h"

#include <uv.h>

enum {
    STREAM_INPUT_BYTES = 64 << 10,
    STREAM_UNSENT_MOST = 64 << 20,
};

struct stream;

struct stream_events {
    void (*data)(struct stream *stream, const uint8_t *data, size_t length);
    /* Nothing more comes: 0 when the peer closed its end, else a negative errno and nothing can be sent either. */
    void (*end)(struct stream *stream, int error);
    /* Some of what waited has been taken. */
    void (*written)(struct stream *stream);
    void (*closed)(struct stream *stream);
};

/* What all streams of a loop share. Never two of them are in it at once. */
struct stream_shared {
    uint64_t bytes_in;
    uint64_t bytes_out;
    uint64_t tls_failed;
    char input[STREAM_INPUT_BYTES];
    char plain[STREAM_INPUT_BYTES]; /* decrypted */
};

struct stream {
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } uv;
    uv_write_t write;
    uv_shutdown_t shutdown;
    const struct stream_events *events;
    struct stream_shared *shared;
    struct tls_session *tls;
    struct buf sending; /* what uv has */
    struct buf waiting; /* what comes after */
    uint64_t given;     /* bytes, to be sent */
    bool is_writing;
    bool is_reading;
    bool is_shut; /* nothing more may be written */
    bool has_shutdown;
    bool is_closing;
    bool has_ended; /* `end` was called */
};

/*
 * Accept a connection that a listener announced, and find out whose it is. 0 or a negative errno; the stream was made
 * either way and has to be closed.
 */
_must_use_ int stream_accept(struct stream *stream, uv_stream_t *listener, struct tls_context *tls,
                             struct stream_shared *shared, const struct stream_events *events, struct peer *ret_peer);

void stream_read_start(struct stream *stream);
void stream_read_stop(struct stream *stream);

/* Write or keep it all: 0; -ENOBUFS, -ENOMEM when it can't be kept, -EPIPE and others when the peer has gone. */
_must_use_ int stream_write(struct stream *stream, const uv_buf_t *bufs, unsigned count);

/* Bytes that the kernel has not taken yet. */
size_t stream_unsent(const struct stream *stream);

/*
 * Bytes that the peer's machine has taken. The kernel lets us write again only when a third of its own queue, which may
 * be megabytes, is free: to tell a slow reader from one that does not read, that queue has to be looked at.
 */
uint64_t stream_sent(const struct stream *stream);

/* After what was written: the end of our direction. */
void stream_shut(struct stream *stream);

/* At once. A second call changes nothing. */
void stream_close(struct stream *stream);
