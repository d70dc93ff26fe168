#include "keeper/zygote.h"

#include "base/cleanup.h"
#include "base/sys.h"
#include "keeper/clone.h"
#include "wire/link.h"
#include "wire/steps.h"

#include <sys/socket.h>

static void spawn_sandbox(int socket, const struct spawn *spawn, int network)
{
    _cleanup_fd_ int pidfd = -1;
    struct wire_message message = {.type = WIRE_SPAWNED, .spawned = {.sandbox = spawn->sandbox, .step = STEP_NETWORK}};
    int r = network < 0 ? network : clone_sandbox(spawn, CLONE_PARENT, &message.spawned, &pidfd);

    message.spawned.error = (uint32_t)-r;
    if (link_send(socket, &message, &pidfd, pidfd >= 0 ? 1 : 0) < 0)
        _exit(1);
}

static _Noreturn void serve(int socket)
{
    static uint8_t frame[WIRE_FRAME_MAX];

    for (;;) {
        struct wire_message message;
        struct spawn spawn;
        int fds[FD_PASS_MAX];
        size_t fd_count = 0;
        int network = clone_network();
        if (link_receive(socket, WIRE_BY_KEEPER, WIRE_IN_RUNNING, frame, &message, fds, &fd_count) <= 0)
            _exit(0);
        if (message.type != WIRE_SPAWN || spawn_from_message(&message.spawn, fds, fd_count, &spawn) < 0)
            _exit(1);
        spawn_sandbox(socket, &spawn, network);
        fd_close_many(fds, fd_count);
    }
}

int zygote_start(int *ret_socket, int *ret_pidfd, struct error *err)
{
    int ends[2];
    int pidfd = -1;
    struct clone_args args = {.flags = CLONE_PIDFD, .pidfd = (uintptr_t)&pidfd, .exit_signal = SIGCHLD};

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return error_errno(err, "starting the zygote");
    pid_t pid = sys_clone3(&args);
    if (pid < 0) {
        int r = error_errno(err, "starting the zygote");
        fd_close_many(ends, 2);
        return r;
    }
    if (pid == 0) {
        /* Only the socket comes along: not the caller's terminal and its signals, not the keeper's locks. */
        if (setsid() < 0 || dup2(ends[1], 0) < 0 || sys_close_range(1, ~0U, 0) < 0)
            _exit(1);
        serve(0);
    }
    (void)close(ends[1]);
    *ret_socket = ends[0];
    *ret_pidfd = pidfd;
    return 0;
}
