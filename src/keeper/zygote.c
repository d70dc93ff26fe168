#include "keeper/zygote.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/sys.h"
#include "keeper/child.h"
#include "wire/link.h"
#include "wire/steps.h"

#include <net/if.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>

static int loopback_up(void)
{
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    _cleanup_fd_
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    return fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0 ? -errno : 0;
}

static int make_network(void)
{
    return unshare(CLONE_NEWNET) < 0 ? -errno : loopback_up();
}

static pid_t clone_sandbox(const struct spawn *spawn, int *ret_pidfd)
{
    struct clone_args args = {
        .flags = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_PARENT | CLONE_PIDFD |
                 CLONE_INTO_CGROUP,
        .pidfd = (uintptr_t)ret_pidfd,
        .cgroup = (uint64_t)(unsigned)spawn->cgroup_fd,
    };

    return sys_clone3(&args);
}

static void answer(int socket, const struct wire_spawned *spawned, int pidfd)
{
    struct wire_message message = {.type = WIRE_SPAWNED, .spawned = *spawned};

    if (link_send(socket, &message, &pidfd, pidfd >= 0 ? 1 : 0) < 0)
        _exit(1);
}

static void spawn_sandbox(int socket, const struct spawn *spawn, int network)
{
    _cleanup_fd_
    int pidfd = -1;
    struct wire_spawned spawned = {.sandbox = spawn->sandbox, .step = STEP_NETWORK, .error = (uint32_t)-network};

    if (network == 0) {
        uint64_t start_ns = clock_now_ns();
        pid_t pid = clone_sandbox(spawn, &pidfd);
        if (pid == 0)
            child_run(spawn);
        spawned.step = STEP_CLONE;
        spawned.error = pid < 0 ? (uint32_t)errno : 0;
        spawned.pid = pid < 0 ? 0 : (uint32_t)pid;
        spawned.clone_ns = clock_now_ns() - start_ns;
    }
    answer(socket, &spawned, pidfd);
}

static _Noreturn void serve(int socket, bool ahead)
{
    static uint8_t frame[WIRE_FRAME_MAX];
    int network = make_network();

    for (;;) {
        struct wire_message message;
        struct spawn spawn;
        int fds[FD_PASS_MAX];
        size_t fd_count = 0;
        if (link_receive(socket, WIRE_BY_KEEPER, WIRE_IN_RUNNING, frame, &message, fds, &fd_count) <= 0 ||
            message.type != WIRE_SPAWN || spawn_from_message(&message.spawn, fds, fd_count, &spawn) < 0)
            _exit(0);
        spawn_sandbox(socket, &spawn, network);
        fd_close_many(fds, fd_count);
        if (!ahead)
            _exit(0);
        network = make_network();
    }
}

/* What the caller ignored or blocked is not passed on into sandboxes. */
static void reset_signals(void)
{
    sigset_t none;

    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    for (int number = 1; number < NSIG; number++)
        (void)signal(number, SIG_DFL);
}

int zygote_start(bool ahead, int *ret_socket, int *ret_pidfd, struct error *err)
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
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (setsid() < 0 || dup2(ends[1], 0) < 0 || sys_close_range(1, ~0U, 0) < 0)
            _exit(1);
        reset_signals();
        serve(0, ahead);
    }
    (void)close(ends[1]);
    *ret_socket = ends[0];
    *ret_pidfd = pidfd;
    return 0;
}
