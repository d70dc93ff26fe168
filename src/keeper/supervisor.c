#include "keeper/supervisor.h"

#include "base/cleanup.h"
#include "base/sys.h"

#include <sys/socket.h>

#define MS_NS UINT64_C(1000000)

/* Room for what is told while the gateway is busy, and for the adoption of thousands of sandboxes. */
enum { SEND_BUFFER = 8 << 20, END_MS = 200 };

int supervisor_start(struct supervisor *supervisor, struct service *service, struct error *err)
{
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return error_errno(err, "making the gateway's socket");
    (void)setsockopt(ends[0], SOL_SOCKET, SO_SNDBUFFORCE, &(int){SEND_BUFFER}, sizeof(int));
    (void)setsockopt(ends[1], SOL_SOCKET, SO_SNDBUFFORCE, &(int){SEND_BUFFER}, sizeof(int));
    /* It sends none, and the last reference to one could keep us for as long as it likes (SO_LINGER). Linux 6.16. */
    (void)setsockopt(ends[0], SOL_SOCKET, SO_PASSRIGHTS, &(int){0}, sizeof(int));
    service->fds[0] = ends[1];
    service->fd_count = 1;
    int r = service_start(service, &supervisor->pidfd, err);
    (void)close(ends[1]);
    if (r < 0) {
        (void)close(ends[0]);
        return r;
    }
    supervisor->socket = ends[0];
    supervisor->ready_ns = 0;
    supervisor->start_ns = 0;
    return 0;
}

void supervisor_ready(struct supervisor *supervisor, uint64_t now_ns)
{
    supervisor->ready_ns = now_ns;
    supervisor->was_ready = true;
    supervisor->tries = 0;
}

int supervisor_lost(struct supervisor *supervisor, bool by_itself, uint64_t now_ns)
{
    close_fd(&supervisor->socket);
    int status = service_end(&supervisor->pidfd, by_itself ? END_MS : 0);
    if (supervisor->ready_ns != 0 && now_ns - supervisor->ready_ns >= SUPERVISOR_HEALTHY_MS * MS_NS)
        supervisor->pause_ms = SUPERVISOR_FIRST_MS;
    if (supervisor->ready_ns == 0)
        supervisor->tries++;
    supervisor->ready_ns = 0;
    supervisor->start_ns = now_ns + supervisor->pause_ms * MS_NS;
    supervisor->pause_ms *= 2;
    if (supervisor->pause_ms > SUPERVISOR_LONGEST_MS)
        supervisor->pause_ms = SUPERVISOR_LONGEST_MS;
    return status;
}

void supervisor_stop(struct supervisor *supervisor, int grace_ms)
{
    close_fd(&supervisor->socket);
    (void)service_end(&supervisor->pidfd, grace_ms);
    supervisor->start_ns = 0;
}
