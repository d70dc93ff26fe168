#include "attack/launch.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/sys.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

enum { OUT_MAX = 16 << 20, CHUNK = 1 << 16, CHUNKS_AT_ONCE = 16, TICK_MS = 1000 };

enum { WAIT_END, WAIT_OUT, WAIT_ERR, WAIT_NEIGHBOUR, WAIT_COUNT };

struct running {
    pid_t pid;
    int pidfd;
    int fds[2]; /* its output and its errors */
    uint64_t deadline_ns;
};

void outcome_release(struct outcome *outcome)
{
    buf_release(&outcome->out);
    buf_release(&outcome->err);
}

/* What there is to read now, within reason; beyond the cap it is only counted. The descriptor is closed at its end. */
static void drain(int *fd, struct buf *buf, bool count_only, uint64_t *ret_total)
{
    static uint8_t chunk[CHUNK];

    for (int i = 0; *fd >= 0 && i < CHUNKS_AT_ONCE; i++) {
        ssize_t n = read(*fd, chunk, sizeof chunk);
        if (n == 0)
            close_fd(fd);
        if (n <= 0)
            return;
        *ret_total += (uint64_t)n;
        if (!count_only)
            ignore_result(buf_append(buf, chunk, (size_t)n));
    }
}

static int start(const struct launch *launch, struct running *running, struct error *err)
{
    struct process process = launch->process;
    int out[2] = {-1, -1};
    int errors[2] = {-1, -1};
    int r = 0;

    if (pipe2(out, O_CLOEXEC | O_NONBLOCK) < 0 || pipe2(errors, O_CLOEXEC | O_NONBLOCK) < 0 ||
        fcntl(out[1], F_SETFL, 0) < 0 || fcntl(errors[1], F_SETFL, 0) < 0)
        r = error_errno(err, "making pipes");
    process.fds[0] = -1;
    process.fds[1] = out[1];
    process.fds[2] = errors[1];
    if (r == 0) {
        running->pid = process_start(&process);
        if (running->pid < 0)
            r = error_set(err, ERROR_SYSTEM, (int)-running->pid, "starting %s", process.argv[0]);
    }
    if (r == 0) {
        running->pidfd = (int)syscall(SYS_pidfd_open, running->pid, 0);
        if (running->pidfd < 0) {
            r = error_errno(err, "watching %s", process.argv[0]);
            (void)process_end(&running->pid);
        }
    }
    running->fds[0] = TAKE_FD(out[0]);
    running->fds[1] = TAKE_FD(errors[0]);
    close_fd(&out[1]);
    close_fd(&errors[1]);
    return r;
}

static bool wait_once(const struct launch *launch, struct running *running, struct outcome *outcome)
{
    struct neighbour *neighbour = launch->neighbour;
    int wait_ms = neighbour != NULL ? neighbour_wait_ms(neighbour) : -1;
    uint64_t err_bytes = 0;
    struct pollfd ready[WAIT_COUNT] = {
        [WAIT_END] = {.fd = running->pidfd, .events = POLLIN},
        [WAIT_OUT] = {.fd = running->fds[0], .events = POLLIN},
        [WAIT_ERR] = {.fd = running->fds[1], .events = POLLIN},
        [WAIT_NEIGHBOUR] = {.fd = neighbour != NULL ? neighbour->from_fd : -1, .events = POLLIN},
    };

    (void)poll(ready, WAIT_COUNT, wait_ms >= 0 ? wait_ms : TICK_MS);
    if (neighbour != NULL)
        neighbour_step(neighbour);
    drain(&running->fds[0], &outcome->out, launch->count_only, &outcome->out_bytes);
    drain(&running->fds[1], &outcome->err, false, &err_bytes);
    if (ready[WAIT_END].revents != 0)
        return false;
    if (clock_now_ns() > running->deadline_ns) {
        outcome->timed_out = true;
        (void)kill(running->pid, SIGKILL);
        return false;
    }
    return true;
}

int launch_run(const struct launch *launch, struct outcome *ret_outcome, struct error *err)
{
    struct running running = {.pidfd = -1, .fds = {-1, -1}};
    struct outcome *outcome = ret_outcome;
    uint64_t err_bytes = 0;
    int status = 0;

    *outcome = (struct outcome){.out = buf_init(OUT_MAX), .err = buf_init(OUT_MAX)};
    int r = start(launch, &running, err);
    if (r == 0) {
        running.deadline_ns = clock_now_ns() + (uint64_t)launch->limit_ms * 1000000U;
        while (wait_once(launch, &running, outcome))
            continue;
        (void)waitpid(running.pid, &status, 0);
        outcome->status = process_status(status);
        drain(&running.fds[0], &outcome->out, launch->count_only, &outcome->out_bytes);
        drain(&running.fds[1], &outcome->err, false, &err_bytes);
    }
    close_fd(&running.pidfd);
    close_fd(&running.fds[0]);
    close_fd(&running.fds[1]);
    return r;
}
