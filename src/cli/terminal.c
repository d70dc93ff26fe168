#include "cli/terminal.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

/* Signals that nobody passes on and that would end us here and now. */
static const int deadly[] = {SIGABRT, SIGALRM, SIGBUS, SIGFPE,  SIGILL,    SIGIO,   SIGPROF,
                             SIGPWR,  SIGSEGV, SIGSYS, SIGTRAP, SIGVTALRM, SIGXCPU, SIGXFSZ};

enum { DISCARDS_MAX = 256 };

static struct termios saved;
static volatile sig_atomic_t is_raw;

int terminal_check(struct error *err)
{
    static const char *const names[] = {"input", "output"};

    for (int fd = STDIN_FILENO; fd <= STDOUT_FILENO; fd++) {
        if (isatty(fd) == 0)
            return error_set(err, ERROR_INVALID, 0,
                             "--tty is for a person at a terminal, and standard %s is none; leave it out", names[fd]);
    }
    return 0;
}

bool terminal_in_background(void)
{
    pid_t group = tcgetpgrp(STDIN_FILENO);

    return group >= 0 && group != getpgrp();
}

static void restore(int when)
{
    if (is_raw != 0)
        (void)tcsetattr(STDIN_FILENO, when, &saved);
    is_raw = 0;
}

static void restore_and_die(int number)
{
    restore(TCSANOW);
    (void)raise(number); /* its action is the default one again */
}

static void catch_deadly(void)
{
    struct sigaction action = {.sa_handler = restore_and_die, .sa_flags = (int)SA_RESETHAND};
    struct sigaction now;

    for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++) {
        if (sigaction(deadly[i], NULL, &now) == 0 && now.sa_handler == SIG_DFL)
            (void)sigaction(deadly[i], &action, NULL);
    }
}

int terminal_enter(struct error *err)
{
    struct termios raw;

    if (is_raw == 0 && tcgetattr(STDIN_FILENO, &saved) < 0)
        return error_errno(err, "reading the terminal's settings");
    catch_deadly();
    raw = saved;
    cfmakeraw(&raw);
    is_raw = 1;
    return tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) < 0 ? error_errno(err, "changing the terminal's settings") : 0;
}

void terminal_pause(void)
{
    restore(TCSADRAIN);
}

/* Also what the kernel holds behind its first 4 KiB, which TCSAFLUSH would leave. */
static void discard_input(void)
{
    struct pollfd ready = {.fd = STDIN_FILENO, .events = POLLIN};
    char nowhere[4096];

    for (int i = 0; i < DISCARDS_MAX && poll(&ready, 1, 0) == 1; i++) {
        if (read(STDIN_FILENO, nowhere, sizeof nowhere) <= 0)
            return;
    }
}

void terminal_leave(void)
{
    if (is_raw != 0 && !terminal_in_background())
        discard_input();
    restore(TCSAFLUSH);
}

void terminal_size(uint16_t *ret_rows, uint16_t *ret_columns)
{
    struct winsize size = {0};

    (void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    *ret_rows = size.ws_row;
    *ret_columns = size.ws_col;
}

int terminal_open_output(void)
{
    int fd = open("/proc/self/fd/1", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

    return fd >= 0 ? fd : STDOUT_FILENO;
}
