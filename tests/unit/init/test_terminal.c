/*
 * Terminals of this machine's own /dev/pts: where they come from makes no difference to init.
 */
#include "init/terminal.h"

#include "base/cleanup.h"
#include "test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>

enum { USER = 1234 };

struct ends {
    int master;
    int slave;
};

static struct ends open_ends(void)
{
    struct ends ends = {-1, -1};

    assert_int_equal(terminal_open(USER, 30, 90, &ends.master, &ends.slave), 0);
    return ends;
}

static void close_ends(struct ends *ends)
{
    close_fd(&ends->master);
    close_fd(&ends->slave);
}

TEST(test_open)
{
    struct ends ends = open_ends();
    struct winsize size;
    struct termios modes;
    struct stat st;

    assert_true(terminal_is_there());
    assert_return_code(fstat(ends.slave, &st), errno);
    assert_true(S_ISCHR(st.st_mode));
    assert_int_equal(st.st_uid, USER);
    assert_int_equal(st.st_mode & 0007, 0);
    assert_return_code(ioctl(ends.slave, TIOCGWINSZ, &size), errno);
    assert_int_equal(size.ws_row, 30);
    assert_int_equal(size.ws_col, 90);
    assert_return_code(tcgetattr(ends.slave, &modes), errno);
    assert_true((modes.c_iflag & IUTF8) != 0 && (modes.c_lflag & (ICANON | ECHO | ISIG)) == (ICANON | ECHO | ISIG));
    assert_int_equal(fcntl(ends.master, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
    assert_int_equal(fcntl(ends.slave, F_GETFL) & O_NONBLOCK, 0);
    assert_int_equal(fcntl(ends.master, F_GETFD), FD_CLOEXEC);
    assert_int_equal(fcntl(ends.slave, F_GETFD), FD_CLOEXEC);
    close_ends(&ends);
}

TEST(test_none)
{
    struct ends ends = {-1, -1};
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        test_hide("/dev");
        bool is_there = terminal_is_there();
        _exit(!is_there && terminal_open(USER, 1, 1, &ends.master, &ends.slave) == -ENOENT && ends.master < 0 ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

TEST(test_resize)
{
    struct ends ends = open_ends();
    struct winsize size;

    terminal_resize(ends.master, 7, UINT16_MAX);
    assert_return_code(ioctl(ends.slave, TIOCGWINSZ, &size), errno);
    assert_int_equal(size.ws_row, 7);
    assert_int_equal(size.ws_col, UINT16_MAX);
    close_ends(&ends);
}

/* A session of its own with a group in the foreground that is not its leader's. */
static _Noreturn void be_shell(const struct ends *ends, int ready)
{
    if (setsid() < 0 || ioctl(ends->slave, TIOCSCTTY, 0) < 0)
        _exit(1);
    pid_t job = fork();
    if (job == 0) {
        (void)pause();
        _exit(1);
    }
    (void)signal(SIGTTOU, SIG_IGN);
    if (setpgid(job, job) < 0 || tcsetpgrp(ends->slave, job) < 0 ||
        write(ready, &job, sizeof job) != (ssize_t)sizeof job)
        _exit(1);
    int status;
    _exit(waitpid(job, &status, 0) == job && WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM ? 0 : 1);
}

TEST(test_foreground)
{
    struct ends ends = open_ends();
    int ready[2];
    pid_t job = 0;
    int status;

    assert_int_equal(terminal_foreground(ends.master), 0);
    assert_int_equal(terminal_foreground(-1), 0);
    assert_return_code(pipe2(ready, O_CLOEXEC), errno);
    pid_t pid = fork();
    if (pid == 0)
        be_shell(&ends, ready[1]);
    assert_int_equal(read(ready[0], &job, sizeof job), sizeof job);
    assert_int_not_equal(job, pid);
    assert_int_equal(terminal_foreground(ends.master), job);
    assert_return_code(kill(-job, SIGTERM), errno);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    (void)close(ready[0]);
    (void)close(ready[1]);
    close_ends(&ends);
}

/* What a reader at the slave gets. */
static void assert_line(int slave, const char *expected)
{
    char line[64] = "";
    ssize_t n = read(slave, line, sizeof line - 1);

    assert_int_equal(n, strlen(expected));
    assert_string_equal(line, expected);
}

TEST(test_end)
{
    struct ends ends = open_ends();
    struct termios modes;

    assert_int_equal(write(ends.master, "whole\n", 6), 6);
    assert_true(terminal_type_end(ends.master, false));
    assert_line(ends.slave, "whole\n");
    assert_line(ends.slave, "");
    assert_int_equal(write(ends.master, "half", 4), 4);
    assert_true(terminal_type_end(ends.master, true));
    assert_line(ends.slave, "half");
    assert_line(ends.slave, "");
    assert_return_code(tcgetattr(ends.slave, &modes), errno);
    modes.c_cc[VEOF] = '!';
    assert_return_code(tcsetattr(ends.slave, TCSANOW, &modes), errno);
    assert_true(terminal_type_end(ends.master, false));
    assert_line(ends.slave, "");
    cfmakeraw(&modes);
    modes.c_cc[VEOF] = 0;
    assert_return_code(tcsetattr(ends.slave, TCSANOW, &modes), errno);
    assert_true(terminal_type_end(ends.master, false));
    assert_line(ends.slave, "\004");
    close_ends(&ends);
}

/* Nobody reads: it says so instead of forgetting. */
TEST(test_end_when_full)
{
    static const char much[4096];
    struct ends ends = open_ends();
    struct termios modes;

    assert_return_code(tcgetattr(ends.slave, &modes), errno);
    cfmakeraw(&modes);
    assert_return_code(tcsetattr(ends.slave, TCSANOW, &modes), errno);
    /* The kernel moves what was written from one buffer to the next in its own time, which makes room once more. */
    for (int full = 0; full < 50; full++) {
        while (write(ends.master, much, sizeof much) > 0 || write(ends.master, much, 1) > 0)
            full = 0;
        assert_int_equal(errno, EAGAIN);
        (void)usleep(1000);
    }
    assert_false(terminal_type_end(ends.master, false));
    close_ends(&ends);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open),       cmocka_unit_test(test_none), cmocka_unit_test(test_resize),
        cmocka_unit_test(test_foreground), cmocka_unit_test(test_end),  cmocka_unit_test(test_end_when_full),
    };
    return cmocka_run_group_tests_name("init/terminal", tests, NULL, NULL);
}
