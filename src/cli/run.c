#include "cli/run.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/sys.h"
#include "cli/advice.h"
#include "cli/options.h"
#include "cli/result.h"
#include "cli/session.h"
#include "cli/terminal.h"
#include "keeper/keeper.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    START_LIMIT_MS = 20000, /* for init to say HELLO */
    KILL_GRACE_MS = 5000,   /* for init to report a killed command */
    LOST_GRACE_MS = 1000,   /* for the keeper to say how an init ended that speaks no more */
    STALL_LIMIT_MS = 30000, /* for the next STALL_BYTES of a file */
    STALL_BYTES = 65536,
    FIRST_COPY = 2, /* channel; the command's is 1 */
};

enum {
    POLL_KEEPER_LOOP,
    POLL_KEEPER,
    POLL_GUEST,
    POLL_SIGNALS,
    POLL_STDIN,
    POLL_STDOUT,
    POLL_STDERR,
    POLL_NET,
    POLL_PLUG,
    POLL_COUNT
};

struct run {
    struct session session;
    int signal_fd;
    bool stdin_is_terminal;
    bool at_terminal;     /* the caller's terminal is the command's */
    uint64_t deadline_ns; /* 0: none */
    bool killed;          /* the deadline has passed once */
    uint64_t copies;      /* so far */
};

/* As with a local program: what the terminal or another process sends us is meant for the command. */
static const int passed_on[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT, SIGWINCH};

static int open_signals(struct run *run, struct error *err)
{
    sigset_t set;

    (void)sigemptyset(&set);
    for (size_t i = 0; i < sizeof passed_on / sizeof *passed_on; i++) {
        struct sigaction now;
        /* What the caller ignores, as nohup does, stays ignored. */
        if (sigaction(passed_on[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
            (void)sigaddset(&set, passed_on[i]);
    }
    (void)signal(SIGPIPE, SIG_IGN);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return error_errno(err, "blocking signals");
    run->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return run->signal_fd < 0 ? error_errno(err, "waiting for signals") : 0;
}

/* Ctrl-C and the like. */
static bool is_to_end(int number)
{
    return number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT;
}

static int resize(struct run *run, struct error *err)
{
    uint16_t rows;
    uint16_t columns;

    terminal_size(&rows, &columns);
    return session_resize(&run->session, rows, columns, err);
}

/* The caller's terminal is the command's from now on; again, when we were stopped. */
static int take_terminal(struct run *run, struct error *err)
{
    struct error gone;

    run->at_terminal = true;
    if (terminal_in_background()) {
        (void)kill(0, SIGTTOU); /* as any program that wants the terminal; SIGCONT brings us here again */
        return 0;
    }
    /* SIGCONT also follows the SIGHUP of a terminal that is no more. */
    return terminal_enter(&gone) < 0 ? session_hang_up(&run->session, err) : resize(run, err);
}

/* What is different when the command has a terminal. 1: nothing is left to be done. */
static int handle_terminal_signal(struct run *run, int number, struct error *err)
{
    int r;

    switch (number) {
    case SIGWINCH:
        r = resize(run, err);
        return r < 0 ? r : 1;
    case SIGTSTP:
        terminal_pause();
        return 0;
    case SIGCONT:
        return take_terminal(run, err);
    case SIGHUP:
    case SIGTERM: /* which a shell would ignore, but not that its terminal goes */
        if (run->session.sinks[0].broken_told)
            return 0; /* it did, all the same */
        r = session_hang_up(&run->session, err);
        return r < 0 ? r : 1;
    default:
        return 0;
    }
}

static int handle_signal(struct run *run, struct error *err)
{
    struct signalfd_siginfo info;

    if (read(run->signal_fd, &info, sizeof info) != (ssize_t)sizeof info)
        return 0;
    int number = (int)info.ssi_signo;
    if (run->session.transfer != NULL && is_to_end(number))
        return error_set(err, ERROR_SYSTEM, EINTR, "copying a file");
    int handled = run->at_terminal ? handle_terminal_signal(run, number, err) : number == SIGWINCH;
    if (handled != 0)
        return handled < 0 ? handled : 0;
    int r = session_signal(&run->session, number == SIGTSTP ? SIGSTOP : number,
                           number == SIGTSTP || number == SIGCONT ? WIRE_SCOPE_TREE : WIRE_SCOPE_GROUP, err);
    if (r == 0 && number == SIGTSTP)
        (void)raise(SIGSTOP);
    return r;
}

/* Reading a terminal from the background would stop us; a local program that does not read is not stopped. */
static bool may_read_stdin(const struct run *run)
{
    return session_stdin_room(&run->session) > 0 && (!run->stdin_is_terminal || !terminal_in_background());
}

static int handle_stdin(struct run *run, struct error *err)
{
    static uint8_t data[WIRE_DATA_MAX];
    size_t room = session_stdin_room(&run->session);

    if (room == 0)
        return 0;
    ssize_t n = read(STDIN_FILENO, data, room);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return 0;
    if (n <= 0 && run->session.options->tty)
        return session_hang_up(&run->session, err);
    return session_send_stdin(&run->session, data, n > 0 ? (size_t)n : 0, err);
}

static int remaining_ms(const struct run *run)
{
    int keeper_ms = keeper_wait_ms(run->session.keeper);
    int deadline_ms = -1;

    if (run->deadline_ns != 0) {
        uint64_t now_ns = clock_now_ns();
        deadline_ms = now_ns >= run->deadline_ns ? 0 : (int)((run->deadline_ns - now_ns) / 1000000U) + 1;
    }
    if (keeper_ms < 0 || deadline_ms < 0)
        return keeper_ms < 0 ? deadline_ms : keeper_ms;
    return keeper_ms < deadline_ms ? keeper_ms : deadline_ms;
}

static void set_deadline(struct run *run, uint64_t ms)
{
    run->deadline_ns = ms != 0 ? clock_now_ns() + ms * 1000000U : 0;
}

static int check_deadline(struct run *run, struct error *err)
{
    if (run->deadline_ns == 0 || clock_now_ns() < run->deadline_ns)
        return 0;
    if (run->session.transfer != NULL)
        return error_set(err, ERROR_SYSTEM, ETIMEDOUT, "copying a file: the sandbox does not answer");
    if (run->session.guest_fd < 0) {
        run->session.state = SESSION_ENDED; /* it closed its link and stayed: all of it goes */
        return 0;
    }
    if (run->session.state == SESSION_STARTING)
        return error_set(err, ERROR_SYSTEM, ETIMEDOUT, "waiting for init to start");
    run->session.result.timed_out = true;
    if (run->killed) {
        run->session.state = SESSION_ENDED; /* init does not even report: all of it goes */
        return 0;
    }
    run->killed = true;
    set_deadline(run, KILL_GRACE_MS);
    return session_signal(&run->session, SIGKILL, WIRE_SCOPE_TREE, err);
}

static int handle_events(struct run *run, const struct pollfd *ready, struct error *err)
{
    struct session *session = &run->session;
    int r = 0;

    if (ready[POLL_SIGNALS].revents != 0)
        r = handle_signal(run, err);
    if (r == 0 && ready[POLL_GUEST].revents != 0) {
        bool was_starting = session->state == SESSION_STARTING;
        r = session_handle_guest(session, err);
        if (r == 0 && was_starting && session->state == SESSION_RUNNING)
            set_deadline(run, session->options->timeout_ms);
        if (session->guest_fd < 0)
            set_deadline(run, LOST_GRACE_MS);
    }
    /* After init: what it said before it ended comes first. */
    if (r == 0 && (ready[POLL_KEEPER_LOOP].revents != 0 || keeper_wait_ms(session->keeper) >= 0)) {
        r = keeper_dispatch(session->keeper, err);
        r = r < 0 ? r : 0;
    }
    if (r == 0 && ready[POLL_KEEPER].revents != 0)
        r = session_handle_keeper(session, err);
    if (r == 0 && ready[POLL_STDIN].revents != 0)
        r = handle_stdin(run, err);
    if (r == 0 && ready[POLL_NET].revents != 0)
        r = net_hear(&session->net, err);
    if (r == 0 && ready[POLL_PLUG].revents != 0)
        r = net_take_plug(&session->net, err);
    for (int i = 0; i < 2; i++) {
        if (ready[POLL_STDOUT + i].revents != 0)
            sink_flush(&session->sinks[i]);
    }
    return r == 0 ? session_acknowledge(session, err) : r;
}

static int poll_once(struct run *run, struct error *err)
{
    struct session *session = &run->session;
    struct sink *sinks = session->sinks;
    struct pollfd ready[POLL_COUNT] = {
        [POLL_KEEPER_LOOP] = {.fd = keeper_fd(session->keeper), .events = POLLIN},
        [POLL_KEEPER] = {.fd = session->client_fd, .events = POLLIN},
        [POLL_GUEST] = {.fd = session->guest_fd, .events = POLLIN},
        [POLL_SIGNALS] = {.fd = run->signal_fd, .events = POLLIN},
        [POLL_STDIN] = {.fd = may_read_stdin(run) ? STDIN_FILENO : -1, .events = POLLIN},
        [POLL_STDOUT] = {.fd = sink_is_waiting(&sinks[0]) ? sinks[0].fd : -1, .events = POLLOUT},
        [POLL_STDERR] = {.fd = sink_is_waiting(&sinks[1]) ? sinks[1].fd : -1, .events = POLLOUT},
        [POLL_NET] = {.fd = session->net.client_fd, .events = POLLIN},
        [POLL_PLUG] = {.fd = session->net.plug_fd, .events = POLLIN},
    };

    if (poll(ready, POLL_COUNT, remaining_ms(run)) < 0 && errno != EINTR)
        return error_errno(err, "waiting for the sandbox");
    int r = handle_events(run, ready, err);
    return r < 0 ? r : check_deadline(run, err);
}

/* While nobody reads; the command itself is past all signals. */
static bool is_asked_to_end(const struct run *run)
{
    struct signalfd_siginfo info;

    return read(run->signal_fd, &info, sizeof info) == (ssize_t)sizeof info && is_to_end((int)info.ssi_signo);
}

/* The command has ended; its last output may still wait for a slow reader. */
static void flush_sinks(struct run *run)
{
    struct sink *sinks = run->session.sinks;

    while (sink_is_waiting(&sinks[0]) || sink_is_waiting(&sinks[1])) {
        struct pollfd ready[] = {
            {.fd = sink_is_waiting(&sinks[0]) ? sinks[0].fd : -1, .events = POLLOUT},
            {.fd = sink_is_waiting(&sinks[1]) ? sinks[1].fd : -1, .events = POLLOUT},
            {.fd = run->signal_fd, .events = POLLIN},
        };
        if (poll(ready, 3, -1) < 0 && errno != EINTR)
            return;
        if (ready[2].revents != 0 && is_asked_to_end(run))
            return;
        sink_flush(&sinks[0]);
        sink_flush(&sinks[1]);
    }
}

static int ended_early(const struct session *session, struct error *err)
{
    int status = session->wait_status;
    char how[64] = "its init closed the link";

    if (session->gone && WIFSIGNALED(status))
        (void)snprintf(how, sizeof how, "its init was ended by signal %d", WTERMSIG(status));
    else if (session->gone)
        (void)snprintf(how, sizeof how, "its init ended with status %d", WEXITSTATUS(status));
    return error_set(err, ERROR_SYSTEM, 0, "the sandbox ended before the command did: %s%s", how,
                     session->result.ready_ns == 0 ? " and never said that it is ready" : "");
}

static int copy_file(struct run *run, const struct option_copy *copy, bool is_put, struct error *err)
{
    struct session *session = &run->session;
    struct transfer transfer;
    uint64_t goal = 0;
    int r = transfer_open(&transfer, session->options, copy, is_put, FIRST_COPY + run->copies++, err);

    if (r == 0)
        r = session_send(session, &(struct wire_message){.type = WIRE_FILE, .file = transfer.question}, err);
    session->transfer = &transfer;
    while (r == 0 && !transfer.ended && session->guest_fd >= 0 && !session->gone) {
        struct wire_message message;
        while (r == 0 && transfer_next(&transfer, &message))
            r = session_send(session, &message, err);
        /* Not with every byte: a hostile init could send one a minute. */
        if (transfer.taken + transfer.heard >= goal) {
            set_deadline(run, STALL_LIMIT_MS);
            goal = transfer.taken + transfer.heard + STALL_BYTES;
        }
        if (r == 0)
            r = poll_once(run, err);
    }
    session->transfer = NULL;
    if (r == 0)
        r = transfer_finish(&transfer, err);
    transfer_release(&transfer);
    return r;
}

/* Where files could not be put in the end is said before the command runs. */
static int try_gets(struct run *run, struct error *err)
{
    const struct option_copies *gets = &run->session.options->gets;
    int r = 0;

    for (size_t i = 0; r == 0 && i < gets->count; i++) {
        struct transfer transfer;
        r = transfer_open(&transfer, run->session.options, &gets->list[i], false, 0, err);
        transfer_release(&transfer);
    }
    return r;
}

/* What goes into the sandbox before the command does. */
static int put_files(struct run *run, struct error *err)
{
    struct session *session = &run->session;
    const struct option_copies *puts = &session->options->puts;
    int r = 0;

    while (r == 0 && session->state == SESSION_STARTING)
        r = poll_once(run, err);
    for (size_t i = 0; r == 0 && session->state == SESSION_RUNNING && i < puts->count; i++)
        r = copy_file(run, &puts->list[i], true, err);
    if (r == 0 && session->state == SESSION_RUNNING)
        r = session_execute(session, err);
    set_deadline(run, session->options->timeout_ms);
    return r;
}

/* After a command that failed, a file that is not there is no surprise: the status stays the command's. */
static int get_files(struct run *run, struct error *err)
{
    const struct option_copies *gets = &run->session.options->gets;
    int r = 0;

    for (size_t i = 0; r == 0 && run->session.result.has_exit && i < gets->count; i++) {
        r = copy_file(run, &gets->list[i], false, err);
        if (r < 0 && r != -EINTR && result_status(&run->session.result) != 0) {
            (void)fprintf(stderr, "hutch: %s\n", err->message);
            *err = (struct error){0};
            r = 0;
        }
    }
    return r;
}

static int run_command(struct run *run, struct error *err)
{
    int r = try_gets(run, err);

    if (r == 0)
        r = session_start(&run->session, err);
    if (r == 0)
        r = open_signals(run, err);
    run->stdin_is_terminal = isatty(STDIN_FILENO) != 0;
    set_deadline(run, START_LIMIT_MS);
    if (r == 0 && run->session.options->puts.count > 0)
        r = put_files(run, err);
    if (r == 0 && run->session.options->tty)
        r = take_terminal(run, err);
    while (r == 0 && run->session.state != SESSION_ENDED)
        r = poll_once(run, err);
    if (r == 0)
        flush_sinks(run);
    terminal_leave();
    run->at_terminal = false;
    if (r == 0)
        r = get_files(run, err);
    if (r == 0)
        r = session_measure(&run->session, err);
    if (r == 0 && !run->session.result.has_exit && !run->session.result.timed_out && run->session.result.oom_kills == 0)
        r = ended_early(&run->session, err);
    return r;
}

static int tell(struct run *run, const struct run_options *options)
{
    const struct result *result = &run->session.result;

    if (options->json) {
        struct buf network = buf_init((size_t)NET_REFUSALS_MAX * 4096);
        int r = run->session.net.keeper_fd >= 0 ? net_append_json(&run->session.net, &network) : 0;
        if (r == 0)
            r = result_print_json(result, &run->session.sinks[0], &run->session.sinks[1], &network);
        buf_release(&network);
        if (r < 0)
            return EXIT_HUTCH;
    } else {
        result_explain(result, options);
        if (result_status(result) != 0)
            net_explain(&run->session.net);
    }
    if (options->stats)
        result_print_stats(result);
    for (int i = 0; i < 2; i++) {
        /* A terminal that was hung up says EIO: its reader has gone. */
        if (run->session.sinks[i].error == 0 || (options->tty && run->session.sinks[i].error == EIO))
            continue;
        (void)fprintf(stderr, "hutch: writing %s: %s\n", i == 0 ? "standard output" : "standard error",
                      strerror(run->session.sinks[i].error));
        return EXIT_HUTCH;
    }
    return result_status(result);
}

/* Also when the options could not be parsed to their end. */
static bool wants_json(char **argv)
{
    for (; *argv != NULL && strcmp(*argv, "--") != 0; argv++) {
        if (strcmp(*argv, "--json") == 0)
            return true;
    }
    return false;
}

int run_main(char **argv)
{
    uint64_t start_ns = clock_now_ns();
    struct run_options options;
    struct run run = {.signal_fd = -1};
    struct error err = {0};
    int status = EXIT_HUTCH;

    int occupied = fd_occupy_standard();
    /* A caller may ignore it, and then nothing could be waited for. */
    (void)signal(SIGCHLD, SIG_DFL);
    int r = options_parse(argv, &options, &err);
    if (r == 0 && occupied < 0)
        r = error_set(&err, ERROR_SYSTEM, -occupied, "opening /dev/null");
    if (r == 0 && options.help) {
        options_print_help();
        return 0;
    }
    if (r == 0 && geteuid() != 0)
        r = error_set(&err, ERROR_DENIED, 0,
                      "making a sandbox needs root (what runs in it has none): sudo hutch run ...");
    if (r == 0 && options.tty)
        r = terminal_check(&err);
    if (r < 0) {
        result_print_error(&err, STEP_NONE, wants_json(argv));
        options_release(&options);
        return EXIT_HUTCH;
    }
    session_init(&run.session, &options, start_ns);
    if (options.tty)
        run.session.sinks[0].fd = terminal_open_output();
    r = run_command(&run, &err);
    if (r < 0) {
        advice_add(run.session.failed_step, &err);
        advice_add_doctor(run.session.failed_step, &err);
        result_print_error(&err, run.session.failed_step, options.json);
    } else {
        status = tell(&run, &options);
    }
    (void)fflush(NULL);
    session_leave(&run.session);
    _exit(status);
}
