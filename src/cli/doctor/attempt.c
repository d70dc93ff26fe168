#include "cli/doctor/attempt.h"

#include "keeper/cgroup.h"
#include "keeper/instance.h"
#include "keeper/janitor.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    LIMIT_MS = 5000,
    END_LIMIT_MS = 1000,   /* for a killed probe to be gone, and then for what it started */
    GUARD_LIMIT_MS = 5000, /* for the guard, beyond the probe's own limit, to remove what is left */
};

static uint32_t limit_of(const struct check *check)
{
    return check->limit_ms != 0 ? check->limit_ms : LIMIT_MS;
}

static _Noreturn void run_probe(struct probe *probe, int done_fd, pid_t guard)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || setpgid(0, 0) < 0 || getppid() != guard)
        _exit(1);
    probe->check->probe(probe);
    _exit(write(done_fd, "d", 1) == 1 ? 0 : 1);
}

/* As poll(); a process that was stopped and goes on starts to wait anew. */
static int wait_for(struct pollfd *ready, nfds_t count, uint32_t limit_ms)
{
    int n;

    do {
        n = poll(ready, count, (int)limit_ms);
    } while (n < 0 && errno == EINTR);
    return n;
}

/* True when the probe has said that it is done; not when it ended otherwise, when its time is up or nobody waits. */
static bool wait_for_probe(struct probe *probe, int done_fd, int doctor_fd, bool *ret_timed_out)
{
    char done;
    struct pollfd ready[] = {{.fd = done_fd, .events = POLLIN}, {.fd = doctor_fd}};
    int n = wait_for(ready, 2, limit_of(probe->check));

    *ret_timed_out = n == 0;
    return n > 0 && ready[0].revents != 0 && read(done_fd, &done, 1) == 1;
}

/* The status, or -1 while the kernel does not let go of it. */
static int end_probe(pid_t pid, bool is_done)
{
    int status = -1;

    /* One that is done exits by itself; its group is killed before its number can be anybody else's. */
    for (int ms = 0; ms < END_LIMIT_MS; ms++) {
        siginfo_t info = {0};
        if (!is_done || ms > END_LIMIT_MS / 2)
            (void)kill(-pid, SIGKILL);
        if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid) {
            (void)kill(-pid, SIGKILL);
            return waitpid(pid, &status, 0) == pid ? status : -1;
        }
        (void)usleep(1000);
    }
    return status;
}

/*
 * What it started and did not wait for came to us (PR_SET_CHILD_SUBREAPER) and is about to end, by the signal to its
 * group or by its parent's death; until then it may hold a copy of the instance's lock.
 */
static void wait_for_descendants(void)
{
    for (int ms = 0; ms < END_LIMIT_MS; ms++) {
        pid_t pid;
        do {
            pid = waitpid(-1, NULL, WNOHANG);
        } while (pid > 0);
        if (pid < 0)
            return;
        (void)usleep(1000);
    }
}

static void judge(struct probe *probe, bool is_done, bool timed_out, int status)
{
    if (is_done && status == 0 && probe->finding->state != FINDING_UNKNOWN)
        return;
    if (timed_out)
        finding_no(probe, 0, "the probe did not answer within %g s", (double)limit_of(probe->check) / 1000);
    else if (status >= 0 && WIFSIGNALED(status))
        finding_no(probe, 0, "the probe was ended by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        finding_no(probe, 0, "the probe ended without an answer");
}

/* What a probe that was killed left: its instance is held by nobody any more. */
static void sweep(void)
{
    struct instance instance;
    struct cgroups *cgroups = NULL;

    if (instance_init(&instance, NULL) < 0)
        return;
    if (cgroups_new(&cgroups, NULL) == 0)
        janitor_sweep(&instance, cgroups);
    cgroups_free(cgroups);
    instance_release(&instance);
}

static _Noreturn void run_guard(struct probe *probe, int doctor_fd)
{
    int done[2];
    bool timed_out = false;

    /* Ctrl-C is for the doctor; this one ends when its work is done. */
    if (setsid() < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0 || pipe2(done, O_CLOEXEC) < 0)
        _exit(1);
    pid_t guard = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        (void)close(doctor_fd);
        (void)close(done[0]);
        run_probe(probe, done[1], guard);
    }
    (void)close(done[1]);
    if (pid < 0) {
        finding_no(probe, errno, "starting a process");
        _exit(0);
    }
    (void)setpgid(pid, pid);
    bool is_done = wait_for_probe(probe, done[0], doctor_fd, &timed_out);
    int status = end_probe(pid, is_done);
    wait_for_descendants();
    judge(probe, is_done, timed_out, status);
    if (!is_done || status != 0)
        sweep();
    _exit(0);
}

void attempt(struct probe *probe)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0) {
        finding_no(probe, errno, "starting a process");
        return;
    }
    pid_t guard = fork();
    if (guard == 0) {
        (void)close(ends[0]);
        run_guard(probe, ends[1]);
    }
    int error = errno;
    (void)close(ends[1]);
    struct pollfd end = {.fd = ends[0], .events = POLLIN};
    if (guard < 0) {
        finding_no(probe, error, "starting a process");
    } else if (wait_for(&end, 1, limit_of(probe->check) + GUARD_LIMIT_MS) == 1) {
        (void)waitpid(guard, NULL, 0);
        if (probe->finding->state == FINDING_UNKNOWN)
            finding_no(probe, 0, "the probe ended without an answer");
    } else {
        finding_no(probe, 0, "the probe can't be ended");
    }
    (void)close(ends[0]);
}
