/*
 * Frames as a hostile init would send them, through the very link and session that `hutch run` has: one output is
 * collected in memory, the other goes to a pipe that nobody reads. The first frame it may not send ends it.
 */
#include "base/cleanup.h"
#include "base/fd.h"
#include "cli/session.h"
#include "fuzz.h"

#include <fcntl.h>
#include <sys/socket.h>

enum { STDIN_SENT = 100000 };

static void check_sink(const struct sink *sink)
{
    MUST(sink->acked <= sink->done && sink->done <= sink->received);
    MUST(sink->collected.length <= sink->collected.cap && sink->waiting.length <= WIRE_WINDOW);
    if (sink->fd < 0)
        MUST(sink->collected.length == sink->received);
    else
        MUST(sink->waiting.length == sink->received - sink->done);
}

static void check_session(const struct session *session)
{
    MUST(session->stdin_taken <= session->stdin_sent && session->stdin_sent == STDIN_SENT);
    MUST(session_stdin_room(session) <= WIRE_DATA_MAX);
    MUST(session->result.has_exit == (session->state == SESSION_ENDED));
    MUST(result_status(&session->result) >= 0 && result_status(&session->result) <= 255);
    (void)result_limit(&session->result);
    check_sink(&session->sinks[0]);
    check_sink(&session->sinks[1]);
}

/* What the sandbox can make the session do, one frame after the other. */
static void converse(struct session *session, int guest, const uint8_t *data, size_t size)
{
    while (size > 0 && session->state != SESSION_ENDED) {
        struct error err = {0};
        int length = wire_frame_length(data, size);
        /* A packet may be anything; where no frame follows it is all there is. */
        size_t packet = length > 0 && (size_t)length <= size ? (size_t)length : size;
        if (packet > WIRE_FRAME_MAX || fd_send(guest, data, packet, NULL, 0) < 0)
            return;
        int r = session_handle_guest(session, &err);
        if (r != 0) {
            MUST(r < 0 && err.message[0] != '\0');
            return;
        }
        check_session(session);
        sink_flush(&session->sinks[1]);
        MUST(session_acknowledge(session, &err) == 0);
        data += packet;
        size -= packet;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct run_options options = {.json = true};
    struct session session;
    int ends[2];
    int unread[2];

    MUST(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0 && pipe2(unread, O_CLOEXEC) == 0);
    session_init(&session, &options, 0);
    sink_release(&session.sinks[1]);
    sink_init(&session.sinks[1], unread[1], 0);
    session.guest_fd = ends[0];
    session.has_stdin = true;
    session.stdin_sent = STDIN_SENT;
    converse(&session, ends[1], data, size);
    session_release(&session);
    close_fd(&ends[1]);
    fd_close_many(unread, 2);
    return 0;
}
