#include "keeper/zygote.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/sys.h"
#include "keeper/airlock_sockets.h"
#include "keeper/child.h"
#include "keeper/ids.h"
#include "keeper/janitor.h"
#include "keeper/mnt.h"
#include "keeper/userns.h"
#include "keeper/world.h"
#include "wire/link.h"
#include "wire/steps.h"

#include <linux/securebits.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

enum {
    CLEAN_FDS = 4,  /* with a CLEAN, when there is no disk */
    LAST_MS = 1000, /* between a keeper's last word and its end */
};

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

/* For a sandbox that nobody has asked for yet. */
static int make_network_ahead(void)
{
    int r = make_network();

    return r < 0 ? r : loopback_up();
}

static pid_t clone_process(const struct spawn *spawn, int *ret_pidfd)
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
    if (r == 0 && spawn->disk_fd >= 0)
        r = mnt_idmap(spawn->disk_fd, userns);
    return r;
}

/*
 * The kernel charges inotify instances, pending signals, message queues and the like to the owner of the user
 * namespace, up to the host. As root's they would be shared with root and with every other sandbox; so the owner is a
 * user that only this sandbox has. Capabilities stay (SECBIT_NO_SETUID_FIXUP).
 */
static pid_t clone_as_owner(const struct spawn *spawn, int *ret_pidfd)
{
    if (syscall(SYS_setresuid, -1, spawn->uid_first, -1) < 0)
        return -1;
    pid_t pid = clone_process(spawn, ret_pidfd);
    int error = errno;
    if (pid != 0 && syscall(SYS_setresuid, -1, 0, -1) < 0)
        _exit(1);
    errno = error;
    return pid;
}

/* The child waits at the pipe `go`, twice. Our reading end stays open: without it, one that ended would end us too. */
static int clone_sandbox(int socket, const struct spawn *spawn, const int go[2], struct wire_spawned *spawned,
                         int *ret_pidfd)
{
    uint64_t start_ns = clock_now_ns();

    spawned->step = STEP_CLONE;
    pid_t pid = clone_as_owner(spawn, ret_pidfd);
    if (pid == 0) {
        /* Nor may it hold what tells the keeper that we have ended: it waits for the keeper itself. */
        (void)close(go[1]);
        (void)close(socket);
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
    spawned->clone_ns = cloned_ns - start_ns;
    spawned->idmap_ns = clock_now_ns() - cloned_ns;
    return r;
}

static void end_sandbox(int pidfd, int cgroup_fd)
{
    if (pidfd < 0)
        return;
    ignore_result(fd_write_file(cgroup_fd, "cgroup.kill", "1"));
    (void)sys_pidfd_send_signal(pidfd, SIGKILL);
}

/* The pidfd, or -1. */
static int spawn_sandbox(int socket, const struct spawn *spawn, bool single, int failed, int network)
{
    int pidfd = -1;
    int go[2] = {-1, -1};
    struct wire_message message = {
        .type = WIRE_SPAWNED, .spawned = {.sandbox = spawn->sandbox, .step = failed < 0 ? STEP_ZYGOTE : STEP_NETWORK}};
    int r = failed < 0 ? failed : network;

    if (r == 0 && pipe2(go, O_CLOEXEC) < 0)
        r = -errno;
    if (r == 0)
        r = clone_sandbox(socket, spawn, go, &message.spawned, &pidfd);
    message.spawned.error = (uint32_t)-r;
    if (link_send(socket, &message, &pidfd, pidfd >= 0 ? 1 : 0) < 0) {
        end_sandbox(pidfd, spawn->cgroup_fd);
        _exit(1);
    }
    /* While the child builds its root; it asks for the outcome before it goes further. */
    int up = r == 0 && single ? loopback_up() : 0;
    if (r == 0 && up == 0 && spawn->airlock_fd >= 0)
        up = airlock_sockets_plug(spawn->airlock_fd, spawn->sandbox);
    unsigned char error = (unsigned char)-up;
    if (r == 0)
        ignore_result(write(go[1], &error, 1));
    fd_close_many(go, 2);
    return pidfd;
}

/* A keeper that ends closes its link a little before; one that only closes it has no use for us, and may not be able to
 * end us. */
static void wait_for_end(int keeper_pidfd, int socket)
{
    struct pollfd ends[] = {{.fd = keeper_pidfd, .events = POLLIN}, {.fd = socket}};

    while (poll(ends, 2, -1) < 0 && errno == EINTR)
        ;
    if (ends[0].revents == 0)
        (void)poll(ends, 1, LAST_MS);
}

/* Neither the caller's terminal nor what it ignored or blocked is passed on to sandboxes. */
static int leave_caller(void)
{
    static const struct sigaction by_default = {.sa_handler = SIG_DFL};
    sigset_t none;

    for (int number = 1; number < NSIG; number++) {
        /* Some can't be set, nor ignored: SIGKILL, SIGSTOP and libc's own. */
        if (sigaction(number, &by_default, NULL) < 0 && errno != EINVAL)
            return -errno;
    }
    (void)sigemptyset(&none);
    return setsid() < 0 || sigprocmask(SIG_SETMASK, &none, NULL) < 0 ? -errno : 0;
}

/* What the caller has of priority is not the sandbox's: not its nice value, not its safety from the OOM killer. */
static int drop_priorities(void)
{
    static const struct sched_param ordinary = {0};
    struct rlimit none = {0, 0};
    char score[16];

    if (syscall(SYS_sched_getscheduler, 0) != SCHED_OTHER &&
        syscall(SYS_sched_setscheduler, 0, SCHED_OTHER, &ordinary) < 0)
        return -errno;
    if (getpriority(PRIO_PROCESS, 0) < 0 && setpriority(PRIO_PROCESS, 0, 0) < 0)
        return -errno;
    if (sys_prlimit(RLIMIT_NICE, &none, NULL) < 0 || sys_prlimit(RLIMIT_RTPRIO, &none, NULL) < 0)
        return -errno;
    ssize_t n = fd_read_file(AT_FDCWD, "/proc/self/oom_score_adj", score, sizeof score);
    if (n < 0)
        return (int)n;
    return score[0] == '-' ? fd_write_file(AT_FDCWD, "/proc/self/oom_score_adj", "0") : 0;
}

static int prepare(bool single)
{
    int r = drop_priorities();

    if (r < 0)
        return r;
    /* For clone_as_owner(): without it the change of user would take all capabilities along. */
    if (prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP) < 0)
        return -errno;
    /* A single run would pay for it once and gain from it once. */
    return single ? 0 : world_leave_host();
}

/*
 * `failed` is what kept it from being what it should be; it is told when a sandbox is asked for. `allowed`, if any, are
 * the CPUs that a sandbox may use. They are taken back only then: the keeper, which sends the zygote to one of them,
 * may come to that late, but never after it has asked.
 */
static _Noreturn void serve(int socket, bool single, const cpu_set_t *allowed, int failed, int network)
{
    static uint8_t frame[WIRE_FRAME_MAX];
    int pidfd = -1;
    int cgroup_fd = -1;

    if (failed == 0)
        failed = prepare(single);
    if (network == 0 && !single)
        network = loopback_up();
    for (;;) {
        struct wire_message message;
        struct spawn spawn;
        int fds[FD_PASS_MAX];
        size_t fd_count = 0;
        if (link_receive(socket, WIRE_BY_KEEPER, WIRE_IN_RUNNING, frame, &message, fds, &fd_count) <= 0) {
            /* The keeper was killed. Its sandbox may have cleared the signal that should have ended it. */
            end_sandbox(pidfd, cgroup_fd);
            _exit(0);
        }
        if (message.type == WIRE_CLEAN && fd_count >= CLEAN_FDS) {
            wait_for_end(fds[0], socket);
            janitor_clean(&message.clean, pidfd, fd_count > CLEAN_FDS ? &fds[CLEAN_FDS] : NULL);
            _exit(0);
        }
        if (message.type != WIRE_SPAWN || spawn_from_message(&message.spawn, fds, fd_count, &spawn) < 0)
            _exit(1);
        if (allowed != NULL && sched_setaffinity(0, sizeof *allowed, allowed) < 0)
            failed = -errno;
        pidfd = spawn_sandbox(socket, &spawn, single, failed, network);
        cgroup_fd = single ? fcntl(spawn.cgroup_fd, F_DUPFD_CLOEXEC, 0) : -1;
        fd_close_many(fds, fd_count);
        if (!single)
            close_fd(&pidfd);
        network = single ? -EBUSY : failed == 0 ? make_network_ahead() : 0;
    }
}

/*
 * A single run's keeper and zygote have half a millisecond of work each before they need one another, but the kernel
 * tends to leave a new process on its parent's CPU until that one sleeps: it is sent to the next CPU there is.
 */
static void send_to_other_cpu(pid_t pid, const cpu_set_t *allowed)
{
    unsigned here = 0;
    cpu_set_t one;

    if (syscall(SYS_getcpu, &here, NULL, NULL) < 0)
        return;
    for (unsigned i = 1; i < CPU_SETSIZE; i++) {
        unsigned cpu = (here + i) % CPU_SETSIZE;
        if (!CPU_ISSET(cpu, allowed))
            continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        (void)sched_setaffinity(pid, sizeof one, &one);
        return;
    }
}

int zygote_start(bool single, int *ret_socket, int *ret_pidfd, struct error *err)
{
    int ends[2];
    int pidfd = -1;
    cpu_set_t allowed;
    bool elsewhere = single && sched_getaffinity(0, sizeof allowed, &allowed) == 0;
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
        /* First of all: it takes longest, and the keeper works on beside it. */
        int network = make_network();
        /* Only the socket comes along: not the caller's terminal and its signals, not the keeper's locks. */
        int r = leave_caller();
        if (r == 0 && (dup2(ends[1], 0) < 0 || sys_close_range(1, ~0U, 0) < 0))
            r = -errno;
        serve(r == 0 ? 0 : ends[1], single, elsewhere ? &allowed : NULL, r, network);
    }
    if (elsewhere)
        send_to_other_cpu(pid, &allowed);
    (void)close(ends[1]);
    *ret_socket = ends[0];
    *ret_pidfd = pidfd;
    return 0;
}
