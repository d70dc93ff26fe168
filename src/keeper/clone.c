#include "keeper/clone.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/sys.h"
#include "keeper/child.h"
#include "keeper/ids.h"
#include "keeper/mnt.h"
#include "keeper/userns.h"
#include "wire/steps.h"

#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

static int loopback_up(void)
{
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    _cleanup_fd_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    return fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0 ? -errno : 0;
}

int clone_network(void)
{
    return unshare(CLONE_NEWNET) < 0 ? -errno : 0;
}

static pid_t clone_process(const struct spawn *spawn, uint64_t flags, int *ret_pidfd)
{
    struct clone_args args = {
        .flags = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_PIDFD |
                 CLONE_INTO_CGROUP | flags,
        .pidfd = (uintptr_t)ret_pidfd,
        .exit_signal = (flags & CLONE_PARENT) != 0 ? 0 : SIGCHLD, /* a sibling has its own sibling's */
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

int clone_sandbox(const struct spawn *spawn, uint64_t flags, struct wire_spawned *spawned, int *ret_pidfd)
{
    uint64_t start_ns = clock_now_ns();
    int go[2];

    spawned->step = STEP_CLONE;
    if (pipe2(go, O_CLOEXEC) < 0)
        return -errno;
    pid_t pid = clone_process(spawn, flags, ret_pidfd);
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
