#include "keeper/zygote.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/sys.h"
#include "keeper/cgroup.h"
#include "keeper/child.h"
#include "keeper/ids.h"
#include "keeper/instance.h"
#include "keeper/mnt.h"
#include "keeper/userns.h"
#include "wire/link.h"
#include "wire/steps.h"

#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

enum { CLEAN_LIMIT_MS = 10000 };

static int loopback_up(void)
{
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    _cleanup_fd_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    return fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0 ? -errno : 0;
}

static int make_network(void)
{
    return unshare(CLONE_NEWNET) < 0 ? -errno : 0;
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

/* The child may go on once its ids mean something, to itself and in its layers. */
static int map_ids(const struct spawn *spawn, pid_t pid)
{
    struct userns_map map = {0, spawn->uid_first, IDS_PER_SANDBOX};
    int r = userns_write_maps(pid, map, map);

    if (r < 0)
        return r;
    _cleanup_fd_ int userns = userns_open(pid);
    if (userns < 0)
        return userns;
    for (size_t i = 0; i < spawn->layer_count && r == 0; i++)
        r = mnt_idmap(spawn->layer_fds[i], userns);
    return r;
}

static int clone_and_map(const struct spawn *spawn, struct wire_spawned *spawned, int *ret_pidfd)
{
    uint64_t start_ns = clock_now_ns();
    int go[2];

    spawned->step = STEP_CLONE;
    if (pipe2(go, O_CLOEXEC) < 0)
        return -errno;
    pid_t pid = clone_sandbox(spawn, ret_pidfd);
    if (pid == 0) {
        (void)close(go[1]);
        child_run(spawn, go[0]);
    }
    int r = pid < 0 ? -errno : 0;
    spawned->pid = pid < 0 ? 0 : (uint32_t)pid;
    uint64_t cloned_ns = clock_now_ns();
    if (r == 0) {
        spawned->step = STEP_IDMAP;
        r = map_ids(spawn, pid);
    }
    if (r == 0 && write(go[1], "g", 1) != 1)
        r = -errno;
    /* While the child builds its root; it asks again before it goes further. */
    if (r == 0 && loopback_up() == 0 && write(go[1], "n", 1) != 1)
        r = -errno;
    fd_close_many(go, 2);
    spawned->clone_ns = cloned_ns - start_ns;
    spawned->idmap_ns = clock_now_ns() - cloned_ns;
    return r;
}

static void spawn_sandbox(int socket, const struct spawn *spawn, int network)
{
    _cleanup_fd_ int pidfd = -1;
    struct wire_message message = {.type = WIRE_SPAWNED, .spawned = {.sandbox = spawn->sandbox, .step = STEP_NETWORK}};
    int r = network < 0 ? network : clone_and_map(spawn, &message.spawned, &pidfd);

    message.spawned.error = (uint32_t)-r;
    if (link_send(socket, &message, &pidfd, pidfd >= 0 ? 1 : 0) < 0)
        _exit(1);
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

/*
 * The caller has gone on: end the sandbox and remove what is left of it. The instance and the ids stay claimed through
 * the descriptors we were handed until that is done; should we be killed, the next keeper's sweep finds the rest.
 */
static void clean(const struct wire_clean *clean, int pidfd)
{
    struct cgroups *cgroups = NULL;
    struct pollfd end = {.fd = pidfd, .events = POLLIN};

    if (cgroups_new(&cgroups, NULL) < 0)
        return;
    ignore_result(cgroup_kill(cgroups, clean->cgroup.text));
    (void)poll(&end, 1, CLEAN_LIMIT_MS);
    for (int attempt = 0; attempt < CLEAN_LIMIT_MS; attempt++) {
        if (cgroup_remove(cgroups, clean->cgroup.text) == 0) {
            instance_forget(clean->instance.text);
            break;
        }
        (void)usleep(1000);
    }
    cgroups_free(cgroups);
}

static _Noreturn void serve(int socket, bool ahead)
{
    static uint8_t frame[WIRE_FRAME_MAX];
    int network = make_network();

    reset_signals();
    for (;;) {
        struct wire_message message;
        struct spawn spawn;
        int fds[FD_PASS_MAX];
        size_t fd_count = 0;
        if (link_receive(socket, WIRE_BY_KEEPER, WIRE_IN_RUNNING, frame, &message, fds, &fd_count) <= 0)
            _exit(0);
        if (message.type == WIRE_CLEAN && fd_count == 3) {
            clean(&message.clean, fds[0]);
            _exit(0);
        }
        if (message.type != WIRE_SPAWN || spawn_from_message(&message.spawn, fds, fd_count, &spawn) < 0)
            _exit(1);
        spawn_sandbox(socket, &spawn, network);
        fd_close_many(fds, fd_count);
        network = ahead ? make_network() : -EBUSY;
    }
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
        if (setsid() < 0 || dup2(ends[1], 0) < 0 || sys_close_range(1, ~0U, 0) < 0)
            _exit(1);
        serve(0, ahead);
    }
    (void)close(ends[1]);
    *ret_socket = ends[0];
    *ret_pidfd = pidfd;
    return 0;
}
