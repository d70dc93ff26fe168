/*
 * The caller's terminal is one of ours, as standard input and output of a child that does what hutch does.
 */
#include "cli/terminal.h"

#include "base/cleanup.h"
#include "test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>

struct caller {
    int master;
    int slave;
    struct termios before;
};

static struct caller open_caller(void)
{
    struct winsize size = {.ws_row = 12, .ws_col = 34};
    struct caller caller = {.master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)};

    assert_true(caller.master >= 0);
    assert_int_equal(unlockpt(caller.master), 0);
    caller.slave = ioctl(caller.master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(caller.slave >= 0);
    assert_return_code(ioctl(caller.master, TIOCSWINSZ, &size), errno);
    assert_return_code(tcgetattr(caller.slave, &caller.before), errno);
    return caller;
}

static void close_caller(struct caller *caller)
{
    close_fd(&caller->master);
    close_fd(&caller->slave);
}

static bool is_raw(void)
{
    struct termios now;

    return tcgetattr(STDIN_FILENO, &now) == 0 && (now.c_lflag & (ICANON | ECHO | ISIG)) == 0 &&
           (now.c_oflag & OPOST) == 0 && (now.c_iflag & (ICRNL | IXON)) == 0;
}

/* Do it in a child at the terminal, as the leader of its session: the wait status. */
static int at_terminal(struct caller *caller, bool (*act)(const struct caller *caller))
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        if (setsid() < 0 || ioctl(caller->slave, TIOCSCTTY, 0) < 0 || dup2(caller->slave, 0) < 0 ||
            dup2(caller->slave, 1) < 0)
            _exit(2);
        _exit(act(caller) ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void assert_as_before(const struct caller *caller)
{
    struct termios now;

    assert_return_code(tcgetattr(caller->slave, &now), errno);
    assert_int_equal(now.c_iflag, caller->before.c_iflag);
    assert_int_equal(now.c_oflag, caller->before.c_oflag);
    assert_int_equal(now.c_lflag, caller->before.c_lflag);
    assert_memory_equal(now.c_cc, caller->before.c_cc, sizeof now.c_cc);
}

static bool enter_and_leave(const struct caller *caller)
{
    struct error err = {0};
    uint16_t rows;
    uint16_t columns;

    (void)caller;
    terminal_leave(); /* of what was never entered */
    terminal_size(&rows, &columns);
    if (terminal_check(&err) < 0 || rows != 12 || columns != 34 || terminal_in_background() ||
        terminal_enter(&err) < 0 || !is_raw())
        return false;
    terminal_pause();
    if (is_raw() || terminal_enter(&err) < 0 || !is_raw() || terminal_enter(&err) < 0)
        return false;
    terminal_leave();
    return !is_raw();
}

TEST(test_enter_and_leave)
{
    struct caller caller = open_caller();

    assert_int_equal(at_terminal(&caller, enter_and_leave), 0);
    assert_as_before(&caller);
    close_caller(&caller);
}

/* More than the kernel shows at once: 4 KiB are in front, the rest is behind. */
static bool leave_input_unread(const struct caller *caller)
{
    static const char typed[8000];
    struct error err = {0};
    int waiting = 0;

    if (terminal_enter(&err) < 0 || write(caller->master, typed, sizeof typed) != (ssize_t)sizeof typed)
        return false;
    terminal_leave();
    return ioctl(STDIN_FILENO, FIONREAD, &waiting) == 0 && waiting == 0;
}

TEST(test_unread_input)
{
    struct caller caller = open_caller();

    assert_int_equal(at_terminal(&caller, leave_input_unread), 0);
    assert_as_before(&caller);
    close_caller(&caller);
}

static bool pause_with_input(const struct caller *caller)
{
    struct error err = {0};
    char line[8];

    if (terminal_enter(&err) < 0 || write(caller->master, "ahead\n", 6) != 6)
        return false;
    terminal_pause();
    return read(STDIN_FILENO, line, sizeof line) == 6;
}

TEST(test_typed_ahead)
{
    struct caller caller = open_caller();

    assert_int_equal(at_terminal(&caller, pause_with_input), 0);
    close_caller(&caller);
}

static bool die(const struct caller *caller)
{
    struct error err = {0};

    (void)caller;
    (void)signal(SIGALRM, SIG_DFL);
    if (terminal_enter(&err) < 0)
        return false;
    (void)raise(SIGALRM);
    return false;
}

TEST(test_deadly_signal)
{
    struct caller caller = open_caller();
    int status = at_terminal(&caller, die);

    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM);
    assert_as_before(&caller);
    close_caller(&caller);
}

static bool ignore_deadly(const struct caller *caller)
{
    struct error err = {0};

    (void)caller;
    (void)signal(SIGALRM, SIG_IGN);
    if (terminal_enter(&err) < 0)
        return false;
    (void)raise(SIGALRM);
    return is_raw();
}

/* What the caller ignores stays ignored. */
TEST(test_ignored_signal)
{
    struct caller caller = open_caller();

    assert_int_equal(at_terminal(&caller, ignore_deadly), 0);
    close_caller(&caller);
}

static bool be_in_background(const struct caller *caller)
{
    (void)caller;
    pid_t job = fork();
    int status;

    if (job == 0) {
        (void)setpgid(0, 0);
        _exit(terminal_in_background() ? 0 : 1);
    }
    return waitpid(job, &status, 0) == job && status == 0 && !terminal_in_background();
}

TEST(test_background)
{
    struct caller caller = open_caller();

    assert_int_equal(at_terminal(&caller, be_in_background), 0);
    close_caller(&caller);
}

/* Its own description: that it does not block changes nothing for others. */
static bool open_output(const struct caller *caller)
{
    int fd = terminal_open_output();

    (void)caller;
    return fd > 1 && isatty(fd) == 1 && (fcntl(fd, F_GETFL) & O_NONBLOCK) != 0 &&
           (fcntl(STDOUT_FILENO, F_GETFL) & O_NONBLOCK) == 0;
}

TEST(test_output)
{
    struct caller caller = open_caller();

    assert_int_equal(at_terminal(&caller, open_output), 0);
    close_caller(&caller);
}

static bool check_others(const struct caller *caller)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    struct error err = {0};

    if (dup2(null, STDOUT_FILENO) < 0 || terminal_check(&err) != -EINVAL || strstr(err.message, "output") == NULL)
        return false;
    return dup2(null, STDIN_FILENO) == 0 && dup2(caller->slave, STDOUT_FILENO) == 1 &&
           terminal_check(&err) == -EINVAL && strstr(err.message, "input") != NULL && terminal_enter(&err) < 0 &&
           !terminal_in_background();
}

TEST(test_no_terminal)
{
    struct caller caller = open_caller();

    assert_int_equal(at_terminal(&caller, check_others), 0);
    assert_as_before(&caller);
    close_caller(&caller);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_enter_and_leave), cmocka_unit_test(test_unread_input),
        cmocka_unit_test(test_typed_ahead),     cmocka_unit_test(test_deadly_signal),
        cmocka_unit_test(test_ignored_signal),  cmocka_unit_test(test_background),
        cmocka_unit_test(test_output),          cmocka_unit_test(test_no_terminal),
    };
    return cmocka_run_group_tests_name("cli/terminal", tests, NULL, NULL);
}
