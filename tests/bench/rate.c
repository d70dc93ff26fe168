/*
 * Theory of operation. A worker is a process of its own, with its own keeper and zygote, or with nothing but clone3.
 * It gets ready, says so, waits for the others, works for one slice and reports what it did. Its count is of sandboxes
 * that are gone, so nothing is left to a later slice but what the kernel itself puts off (network namespaces above
 * all, in both kinds): that is what the rest and the quiet moment before a slice are for.
 *
 * "hutch" asks for the next sandbox as soon as it has asked for the end of the one before, as the gateway does;
 * "hutch-wait" waits until the keeper says that nothing of it is left.
 */
#include "many.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/sys.h"
#include "client.h"
#include "quiet.h"

#include <sched.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum {
    WARM_UP = 20,
    REST_US = 1000000,
    WORKERS_MAX = 2,
    COLUMNS = 6, /* kinds, each with 1 and with 2 workers */
    SLICES_MAX = 1000,
    ENDING_MAX = 32,
    BARE_ID_FIRST = 0x70000000,
};

enum kind { KIND_BARE, KIND_HUTCH, KIND_HUTCH_WAIT, KIND_COUNT };
static const char *const kind_names[] = {"bare", "hutch", "hutch-wait"};

struct report {
    uint64_t count;
    uint64_t elapsed_ns;
    struct error err;
};

static _Noreturn void bare_child(int go_fd)
{
    static char name[] = "true";
    static char *const argv[] = {name, NULL};
    char byte;

    if (read(go_fd, &byte, 1) == 1)
        (void)execve("/usr/bin/true", argv, argv + 1);
    _exit(127);
}

static int write_maps(pid_t pid)
{
    static const char *const files[] = {"uid_map", "gid_map"};
    char path[64];
    char text[64];

    (void)snprintf(text, sizeof text, "0 %u 65536", BARE_ID_FIRST);
    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(path, sizeof path, "/proc/%d/%s", pid, files[i]);
        int r = fd_write_file(AT_FDCWD, path, text);
        if (r < 0)
            return r;
    }
    return 0;
}

static int bare_once(const int *pipe_fds, struct error *err)
{
    struct clone_args args = {.flags = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC |
                                       CLONE_NEWUTS | CLONE_NEWCGROUP,
                              .exit_signal = SIGCHLD};
    int status = 0;
    pid_t pid = sys_clone3(&args);

    if (pid < 0)
        return error_errno(err, "cloning into seven namespaces");
    if (pid == 0)
        bare_child(pipe_fds[0]);
    int r = write_maps(pid);
    if (r < 0)
        (void)kill(pid, SIGKILL);
    else
        ignore_result(write(pipe_fds[1], "g", 1));
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (r < 0)
        return error_set(err, ERROR_SYSTEM, -r, "writing the id maps of a bare clone");
    return status != 0 ? error_set(err, ERROR_SYSTEM, 0, "a bare `true` ended with status %d", status) : 0;
}

static int hutch_once(struct client *client, bool wait, struct error *err)
{
    struct guest guest = {.fd = -1};
    int r = client_create(client, &guest, err);

    if (r == 0)
        r = client_run_true(client, &guest, err);
    if (r == 0)
        r = client_destroy(client, &guest, err);
    close_fd(&guest.fd);
    return r < 0 ? r : client_wait_gone(client, wait ? 0 : ENDING_MAX, err);
}

struct worker {
    enum kind kind;
    struct client client;
    int pipe_fds[2];
};

static int once(struct worker *worker, struct error *err)
{
    if (client_interrupted)
        return error_set(err, ERROR_SYSTEM, EINTR, "asked to stop");
    if (worker->kind == KIND_BARE)
        return bare_once(worker->pipe_fds, err);
    return hutch_once(&worker->client, worker->kind == KIND_HUTCH_WAIT, err);
}

/* Ready, go, work, report: `socket` is the parent's. */
static int work(struct worker *worker, int socket, unsigned slice_ms, struct report *report)
{
    struct error *err = &report->err;
    char byte = 'r';
    int r = 0;

    for (int i = 0; r == 0 && i < WARM_UP; i++)
        r = once(worker, err);
    if (r == 0 && worker->kind != KIND_BARE)
        r = client_wait_gone(&worker->client, 0, err);
    if (r < 0)
        return r;
    if (write(socket, &byte, 1) != 1 || read(socket, &byte, 1) != 1)
        return error_set(err, ERROR_SYSTEM, EPIPE, "waiting for the start");
    uint64_t start_ns = clock_now_ns();
    uint64_t end_ns = start_ns + (uint64_t)slice_ms * 1000000U;
    while (r == 0 && clock_now_ns() < end_ns) {
        r = once(worker, err);
        report->count++;
    }
    if (r == 0 && worker->kind != KIND_BARE)
        r = client_wait_gone(&worker->client, 0, err);
    report->elapsed_ns = clock_now_ns() - start_ns;
    return r;
}

static _Noreturn void run_worker(const struct many_options *options, enum kind kind, int socket, unsigned slice_ms)
{
    struct worker worker = {.kind = kind, .pipe_fds = {-1, -1}};
    struct report report = {0};
    int r;

    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (kind == KIND_BARE)
        r = pipe2(worker.pipe_fds, O_CLOEXEC) < 0 ? error_errno(&report.err, "making a pipe") : 0;
    else
        r = client_start(&worker.client, options->init, options->state, &report.err);
    if (r == 0)
        r = work(&worker, socket, slice_ms, &report);
    if (kind != KIND_BARE)
        client_stop(&worker.client);
    /* A worker that failed before it was ready is heard too: its report is no single byte. */
    ignore_result(write(socket, &report, sizeof report));
    _exit(r < 0 ? 1 : 0);
}

static int hear_report(int socket, struct report *report, struct error *err)
{
    if (read(socket, report, sizeof *report) != (ssize_t)sizeof *report)
        return error_set(err, ERROR_SYSTEM, EPIPE, "waiting for a worker");
    if (report->err.message[0] != '\0') {
        *err = report->err;
        return -EIO;
    }
    return 0;
}

/* Everybody starts at the same time, then everybody reports. */
static int conduct(const int *sockets, size_t count, double *ret_rate, struct error *err)
{
    struct report report;
    double rate = 0;

    for (size_t i = 0; i < count; i++) {
        ssize_t n = read(sockets[i], &report, sizeof report);
        if (n == (ssize_t)sizeof report)
            *err = report.err;
        if (n != 1)
            return n == (ssize_t)sizeof report ? -EIO : error_set(err, ERROR_SYSTEM, EPIPE, "starting a worker");
    }
    for (size_t i = 0; i < count; i++)
        ignore_result(write(sockets[i], "g", 1));
    for (size_t i = 0; i < count; i++) {
        int r = hear_report(sockets[i], &report, err);
        if (r < 0)
            return r;
        rate += (double)report.count * 1e9 / (double)report.elapsed_ns;
    }
    *ret_rate = rate;
    return 0;
}

static int slice(const struct many_options *options, enum kind kind, size_t workers, unsigned slice_ms,
                 double *ret_rate, struct error *err)
{
    int sockets[WORKERS_MAX] = {-1, -1};
    pid_t pids[WORKERS_MAX] = {0};
    int r = 0;

    for (size_t i = 0; r == 0 && i < workers; i++) {
        int ends[2];
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
            return error_errno(err, "making a socket pair");
        sockets[i] = ends[0];
        pids[i] = fork();
        if (pids[i] == 0) {
            fd_close_many(sockets, i + 1);
            run_worker(options, kind, ends[1], slice_ms);
        }
        if (pids[i] < 0)
            r = error_errno(err, "starting a worker");
        (void)close(ends[1]);
    }
    if (r == 0)
        r = conduct(sockets, workers, ret_rate, err);
    fd_close_many(sockets, workers);
    for (size_t i = 0; i < workers; i++) {
        if (pids[i] > 0 && r < 0)
            (void)kill(pids[i], SIGTERM);
        while (pids[i] > 0 && waitpid(pids[i], NULL, 0) < 0 && errno == EINTR)
            ;
    }
    return r;
}

int rate_measure(const struct many_options *options, unsigned slices, unsigned slice_ms, struct error *err)
{
    static double rates[SLICES_MAX][COLUMNS];
    struct quiet quiet;

    if (slices < 1 || slices > SLICES_MAX)
        return error_set(err, ERROR_INVALID, 0, "slices must be 1 to %d", SLICES_MAX);
    quiet_init(&quiet);
    for (unsigned i = 0; i < slices; i++) {
        for (size_t column = 0; column < COLUMNS; column++) {
            (void)usleep(REST_US);
            quiet_wait(&quiet, QUIET_LOOKS, QUIET_LOOK_MS);
            int r = slice(options, (enum kind)(column % KIND_COUNT), column / KIND_COUNT + 1, slice_ms,
                          &rates[i][column], err);
            if (r < 0)
                return r;
        }
    }
    quiet_release(&quiet);
    (void)printf("{\"busy\": %.3f, \"rates\": ", quiet_busy(&quiet));
    for (size_t column = 0; column < COLUMNS; column++) {
        (void)printf("%s\"%s-%zu\": [", column == 0 ? "{" : ", ", kind_names[column % KIND_COUNT],
                     column / KIND_COUNT + 1);
        for (unsigned i = 0; i < slices; i++)
            (void)printf("%s%.1f", i == 0 ? "" : ", ", rates[i][column]);
        (void)printf("]");
    }
    (void)printf("}}\n");
    return 0;
}
