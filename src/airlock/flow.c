#include "airlock/flow.h"

#include "base/cleanup.h"
#include "base/fd.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
    LARGE_BYTES = 262144, /* a flow that has come so far is large */
    PIECE_BYTES = 65536,
    PIPE_BYTES = 262144,
};

void flow_init(struct flow *flow)
{
    *flow = (struct flow){.pipe = {-1, -1}};
}

void flow_release(struct flow *flow)
{
    free(flow->kept);
    flow->kept = NULL;
    flow->kept_length = 0;
    fd_close_many(flow->pipe, 2);
}

void flow_watch(struct flow *flow)
{
    flow->is_watching = true;
    flow->first_length = 0;
}

bool flow_is_waiting(const struct flow *flow)
{
    return flow->kept_length > 0 || flow->piped > 0;
}

/* How many bytes the target took: fewer when it has no room. */
static ssize_t send_some(int to, const uint8_t *data, size_t length)
{
    size_t done = 0;

    while (done < length) {
        ssize_t n = send(to, data + done, length - done, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? (ssize_t)done : -errno;
        done += (size_t)n;
    }
    return (ssize_t)done;
}

static int keep(struct flow *flow, const uint8_t *data, size_t length)
{
    if (length == 0)
        return 0;
    if (flow->kept == NULL)
        flow->kept = malloc(FLOW_CAP);
    if (flow->kept == NULL)
        return -ENOMEM;
    if (flow->kept_length + length > FLOW_CAP)
        return -ENOBUFS;
    memmove(flow->kept, flow->kept + flow->kept_start, flow->kept_length);
    flow->kept_start = 0;
    memcpy(flow->kept + flow->kept_length, data, length);
    flow->kept_length += length;
    return 0;
}

int flow_push(struct flow *flow, int to, const uint8_t *data, size_t length)
{
    ssize_t n = 0;

    if (!flow_is_waiting(flow) && to >= 0)
        n = send_some(to, data, length);
    if (n < 0)
        return (int)n;
    flow->bytes += (size_t)n;
    return keep(flow, data + n, length - (size_t)n);
}

static int flush_kept(struct flow *flow, int to)
{
    ssize_t n = send_some(to, flow->kept + flow->kept_start, flow->kept_length);

    if (n < 0)
        return (int)n;
    flow->bytes += (size_t)n;
    flow->kept_start += (size_t)n;
    flow->kept_length -= (size_t)n;
    if (flow->kept_length == 0) {
        free(flow->kept);
        flow->kept = NULL;
        flow->kept_start = 0;
    }
    return 0;
}

static int flush_pipe(struct flow *flow, int to)
{
    while (flow->piped > 0) {
        ssize_t n = splice(flow->pipe[0], NULL, to, NULL, flow->piped, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n == 0 || errno == EAGAIN ? 0 : -errno;
        flow->piped -= (size_t)n;
        flow->bytes += (size_t)n;
    }
    return 0;
}

int flow_flush(struct flow *flow, int to)
{
    int r = flow->kept_length > 0 ? flush_kept(flow, to) : 0;

    if (r == 0 && flow->kept_length == 0)
        r = flush_pipe(flow, to);
    if (r < 0 || flow_is_waiting(flow) || !flow->has_end || flow->has_ended)
        return r;
    flow->has_ended = true;
    return shutdown(to, SHUT_WR) < 0 && errno != ENOTCONN ? -errno : 0;
}

static void watch(struct flow *flow, const uint8_t *data, size_t length)
{
    size_t room = FLOW_FIRST - flow->first_length;

    if (!flow->is_watching)
        return;
    memcpy(flow->first + flow->first_length, data, length < room ? length : room);
    flow->first_length += length < room ? length : room;
}

static int copy_some(struct flow *flow, int from, int to, size_t *ret_moved)
{
    uint8_t piece[PIECE_BYTES];
    ssize_t n = recv(from, piece, sizeof piece, MSG_DONTWAIT);

    *ret_moved = 0;
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    flow->has_end = n == 0;
    if (n > 0)
        watch(flow, piece, (size_t)n);
    *ret_moved = (size_t)n;
    return flow_push(flow, to, piece, (size_t)n);
}

static bool is_spliced(struct flow *flow)
{
    /* What is spliced is not seen. */
    if (flow->is_watching && flow->first_length < FLOW_FIRST)
        return false;
    if (flow->pipe[0] >= 0)
        return true;
    if (flow->no_pipe || flow->bytes < LARGE_BYTES)
        return false;
    if (pipe2(flow->pipe, O_CLOEXEC | O_NONBLOCK) < 0) {
        flow->no_pipe = true;
        return false;
    }
    /* It may be refused, and then the pipe is smaller. */
    (void)fcntl(flow->pipe[1], F_SETPIPE_SZ, PIPE_BYTES);
    return true;
}

static int splice_some(struct flow *flow, int from, int to, size_t *ret_moved)
{
    ssize_t n = splice(from, NULL, flow->pipe[1], NULL, PIPE_BYTES, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);

    *ret_moved = 0;
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    flow->has_end = n == 0;
    flow->piped += (size_t)n;
    *ret_moved = (size_t)n;
    return flush_pipe(flow, to);
}

int flow_pump(struct flow *flow, int from, int to)
{
    size_t moved = 1;

    for (size_t share = 0; share < FLOW_SHARE && moved > 0; share += moved) {
        int r = flow_flush(flow, to);
        if (r < 0 || flow_is_waiting(flow) || flow->has_end)
            return r;
        r = is_spliced(flow) ? splice_some(flow, from, to, &moved) : copy_some(flow, from, to, &moved);
        if (r < 0)
            return r;
    }
    return flow_flush(flow, to);
}
