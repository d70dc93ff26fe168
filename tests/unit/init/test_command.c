/*
 * Commands are started for real, outside any sandbox: as root, so that they can become somebody else, and with
 * no_new_privs, without which nobody else could load a filter.
 */
#include "base/cleanup.h"
#include "base/fd.h"
#include "init/command.h"
#include "init/confine.h"
#include "test.h"
#include "wire/capability.h"

#include <grp.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { USER = 1234, GROUP = 2345, OUR_FOLDER = 50 };

#define STRINGS(text) text, sizeof(text)

struct outcome {
    int result;
    enum wire_failed failed;
    int status;
    char out[16384];
    char err[4096];
};

static struct wire_exec make_exec(uint32_t argc, uint32_t envc)
{
    return (struct wire_exec){
        .filter = WIRE_FILTER_STANDARD, .uid = USER, .gid = GROUP, .argc = argc, .envc = envc, .folder = wire_str("/")};
}

/* All there is to read; our ends do not block, the commands here end soon. */
static void slurp(int fd, char *text, size_t size)
{
    assert_return_code(fcntl(fd, F_SETFL, 0), errno);
    ssize_t n = fd_read_all(fd, text, size - 1);
    assert_true(n >= 0);
    text[n] = '\0';
    (void)close(fd);
}

static struct outcome run_with_input(const struct wire_exec *exec, const char *strings, size_t length,
                                     const char *input)
{
    struct outcome outcome = {0};
    struct command_pipes pipes = {-1, -1, -1, -1};
    pid_t pid = -1;

    outcome.result = command_start(exec, strings, length, -1, &pipes, &pid, &outcome.failed);
    test_reclaim_stack();
    if (outcome.result < 0)
        return outcome;
    assert_int_equal(pipes.stdin_fd >= 0, (exec->flags & WIRE_EXEC_STDIN) != 0);
    if (pipes.stdin_fd >= 0)
        assert_int_equal(write(pipes.stdin_fd, input, strlen(input)), strlen(input));
    close_fd(&pipes.stdin_fd);
    slurp(pipes.stdout_fd, outcome.out, sizeof outcome.out);
    slurp(pipes.stderr_fd, outcome.err, sizeof outcome.err);
    assert_int_equal(waitpid(pid, &outcome.status, 0), pid);
    return outcome;
}

static struct outcome run(const struct wire_exec *exec, const char *strings, size_t length)
{
    return run_with_input(exec, strings, length, "");
}

static void assert_prints(const struct wire_exec *exec, const char *strings, size_t length, const char *expected)
{
    struct outcome outcome = run(exec, strings, length);

    assert_int_equal(outcome.result, 0);
    assert_string_equal(outcome.err, "");
    assert_string_equal(outcome.out, expected);
    assert_int_equal(outcome.status, 0);
}

TEST(test_streams)
{
    struct wire_exec exec = make_exec(3, 0);
    struct outcome outcome = run(&exec, STRINGS("sh\0-c\0echo out; echo err >&2; exit 7"));

    assert_int_equal(outcome.result, 0);
    assert_string_equal(outcome.out, "out\n");
    assert_string_equal(outcome.err, "err\n");
    assert_true(WIFEXITED(outcome.status));
    assert_int_equal(WEXITSTATUS(outcome.status), 7);
}

TEST(test_strings)
{
    struct wire_exec arguments = make_exec(7, 0);
    struct wire_exec environment = make_exec(1, 3);

    assert_prints(&arguments, STRINGS("sh\0-c\0printf '[%s]' \"$@\"\0sh\0a b\0\0$x\xff"), "[a b][][$x\xff]");
    assert_prints(&environment, STRINGS("env\0A=1\0B=\0PATH=/usr/bin"), "A=1\nB=\nPATH=/usr/bin\n");
    environment.envc = 0;
    assert_prints(&environment, STRINGS("env"), "");
}

TEST(test_path)
{
    struct wire_exec exec = make_exec(1, 1);

    assert_prints(&exec, STRINGS("true\0PATH=/nonexistent::/etc/passwd:/usr/bin"), "");
    assert_prints(&exec, STRINGS("/usr/bin/true\0PATH="), "");
    assert_int_equal(run(&exec, STRINGS("true\0PATH=/nonexistent")).result, -ENOENT);
    assert_int_equal(run(&exec, STRINGS("true\0PATH=/etc/passwd")).result, -ENOENT);
    assert_int_equal(run(&exec, STRINGS("true\0PATH=")).result, -ENOENT);
    assert_int_equal(run(&exec, STRINGS("passwd\0PATH=/etc:/nonexistent")).result, -EACCES);
}

TEST(test_stdin)
{
    struct wire_exec exec = make_exec(1, 0);

    assert_prints(&exec, STRINGS("cat"), "");
    exec.flags = WIRE_EXEC_STDIN;
    assert_string_equal(run_with_input(&exec, STRINGS("cat"), "some input").out, "some input");
}

static void assert_contains(const char *text, const char *part)
{
    assert_row(part, strstr(text, part) != NULL);
}

/* Nothing is left but the user: no groups, no capabilities, no blocked signals, and the filter is there. */
TEST(test_user)
{
    struct wire_exec exec = make_exec(2, 0);
    struct outcome outcome = run(&exec, STRINGS("cat\0/proc/self/status"));

    assert_contains(outcome.out, "\nUid:\t1234\t1234\t1234\t1234\n");
    assert_contains(outcome.out, "\nGid:\t2345\t2345\t2345\t2345\n");
    assert_contains(outcome.out, "\nGroups:\t \n");
    assert_contains(outcome.out, "\nSigBlk:\t0000000000000000\n");
    assert_contains(outcome.out, "\nCapInh:\t0000000000000000\n");
    assert_contains(outcome.out, "\nCapPrm:\t0000000000000000\n");
    assert_contains(outcome.out, "\nCapEff:\t0000000000000000\n");
    assert_contains(outcome.out, "\nCapAmb:\t0000000000000000\n");
    assert_contains(outcome.out, "\nSeccomp:\t2\n");
    assert_prints(&exec, STRINGS("cat\0/proc/self/oom_score_adj"), "800\n");
}

static uint64_t bounding_set(const char *status)
{
    const char *line = strstr(status, "\nCapBnd:\t");

    assert_non_null(line);
    return strtoull(line + strlen("\nCapBnd:\t"), NULL, 16);
}

/* Root inside keeps what package managers need and loses what only init may do. */
TEST(test_root)
{
    char expected[64];
    struct wire_exec exec = make_exec(2, 0);
    uint64_t nobodys = bounding_set(run(&exec, STRINGS("cat\0/proc/self/status")).out);

    exec.uid = 0;
    exec.gid = 0;
    struct outcome outcome = run(&exec, STRINGS("cat\0/proc/self/status"));
    (void)snprintf(expected, sizeof expected, "\nCapEff:\t%016llx\n", (unsigned long long)CAPABILITIES_ROOT);
    assert_contains(outcome.out, expected);
    assert_contains(outcome.out, "\nUid:\t0\t0\t0\t0\n");
    assert_int_equal(bounding_set(outcome.out) & CAPABILITIES_INIT, CAPABILITIES_ROOT);
    assert_int_equal(nobodys & CAPABILITIES_INIT, CAPABILITIES_NONE);
}

TEST(test_limits)
{
    struct wire_exec exec = make_exec(2, 0);

    exec.open_files = 123;
    exec.file_bytes = 4567;
    exec.stack_bytes = 1 << 20;
    exec.cpu_seconds = 89;
    struct outcome outcome = run(&exec, STRINGS("cat\0/proc/self/limits"));
    assert_contains(outcome.out, "Max open files            123                  123 ");
    assert_contains(outcome.out, "Max file size             4567                 4567 ");
    assert_contains(outcome.out, "Max stack size            1048576              1048576 ");
    assert_contains(outcome.out, "Max cpu time              89                   89 ");
}

TEST(test_folder_and_descriptors)
{
    struct wire_exec exec = make_exec(3, 0);

    exec.folder = wire_str("/usr/bin");
    assert_prints(&exec, STRINGS("sh\0-c\0pwd"), "/usr/bin\n");
    exec.folder = wire_str("");
    assert_prints(&exec, STRINGS("sh\0-c\0pwd"), "/\n");
    /* 3 is the folder that is being read. */
    assert_prints(&exec, STRINGS("sh\0-c\0cd /proc/self/fd; echo *"), "0 1 2 3\n");
}

TEST(test_session)
{
    struct wire_exec exec = make_exec(1, 0);
    struct command_pipes pipes;
    enum wire_failed failed;
    pid_t pid;

    exec.flags = WIRE_EXEC_STDIN;
    assert_int_equal(command_start(&exec, STRINGS("cat"), -1, &pipes, &pid, &failed), 0);
    test_reclaim_stack();
    assert_int_equal(getsid(pid), pid);
    assert_int_equal(getpgid(pid), pid);
    assert_int_equal(fcntl(pipes.stdout_fd, F_GETFD), FD_CLOEXEC);
    assert_int_equal(fcntl(pipes.stdout_fd, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
    close_fd(&pipes.stdin_fd);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    close_fd(&pipes.stdout_fd);
    close_fd(&pipes.stderr_fd);
}

/* bash, when asked for a connection, says which call failed. */
TEST(test_filters)
{
    struct wire_exec exec = make_exec(3, 0);

    assert_contains(run(&exec, STRINGS("bash\0-c\0: >/dev/tcp/127.0.0.1/1")).err, "Connection refused");
    exec.filter = WIRE_FILTER_TIGHT;
    assert_contains(run(&exec, STRINGS("bash\0-c\0: >/dev/tcp/127.0.0.1/1")).err, "Function not implemented");
}

TEST(test_refused)
{
    static const struct {
        const char *name;
        const char *strings;
        size_t length;
        uint32_t argc;
        uint32_t envc;
        uint32_t flags;
        uint8_t filter;
        const char *folder;
        int result;
        enum wire_failed failed;
    } rows[] = {
        {"no command", STRINGS("true"), 0, 0, 0, 1, "/", -EINVAL, WIRE_FAILED_SETUP},
        {"a missing command on a terminal", STRINGS("no-such-command"), 1, 0, WIRE_EXEC_TTY, 1, "/", -ENOENT,
         WIRE_FAILED_PROGRAM},
        {"an unknown filter", STRINGS("true"), 1, 0, 0, 2, "/", -EINVAL, WIRE_FAILED_SETUP},
        {"fewer arguments than it says", STRINGS("true\0a"), 3, 0, 0, 1, "/", -EINVAL, WIRE_FAILED_SETUP},
        {"fewer variables than it says", STRINGS("true\0A=1"), 1, 2, 0, 1, "/", -EINVAL, WIRE_FAILED_SETUP},
        {"no NUL at the end", "true", 4, 1, 0, 0, 1, "/", -EINVAL, WIRE_FAILED_SETUP},
        {"no strings", "", 0, 1, 0, 0, 1, "/", -EINVAL, WIRE_FAILED_SETUP},
        {"very many arguments", STRINGS("true"), UINT32_MAX / 16, 0, 0, 1, "/", -EINVAL, WIRE_FAILED_SETUP},
        {"a missing command", STRINGS("no-such-command"), 1, 0, 0, 1, "/", -ENOENT, WIRE_FAILED_PROGRAM},
        {"a missing file", STRINGS("/no/such/file"), 1, 0, 0, 1, "/", -ENOENT, WIRE_FAILED_PROGRAM},
        {"a file that is no program", STRINGS("/etc/passwd"), 1, 0, 0, 1, "/", -EACCES, WIRE_FAILED_PROGRAM},
        {"a folder", STRINGS("/usr"), 1, 0, 0, 1, "/", -EACCES, WIRE_FAILED_PROGRAM},
        {"a file below a file", STRINGS("/etc/passwd/x"), 1, 0, 0, 1, "/", -ENOTDIR, WIRE_FAILED_PROGRAM},
        {"a missing folder", STRINGS("true"), 1, 0, 0, 1, "/no/such/folder", -ENOENT, WIRE_FAILED_FOLDER},
        {"a folder of somebody else", STRINGS("true"), 1, 0, 0, 1, "/root", -EACCES, WIRE_FAILED_FOLDER},
        {"a folder of ours", STRINGS("true"), 1, 0, 0, 1, "/proc/self/fd/50", -ENOENT, WIRE_FAILED_FOLDER},
    };

    /* CVE-2024-21626: what init has open is no way out for the command. */
    assert_return_code(dup3(open("/", O_PATH | O_CLOEXEC), OUR_FOLDER, O_CLOEXEC), errno);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct wire_exec exec = make_exec(rows[i].argc, rows[i].envc);
        size_t open_before = test_open_fds();
        exec.flags = rows[i].flags;
        exec.filter = rows[i].filter;
        exec.folder = wire_str(rows[i].folder);
        struct outcome outcome = run(&exec, rows[i].strings, rows[i].length);
        assert_row(rows[i].name, outcome.result == rows[i].result && outcome.failed == rows[i].failed);
        assert_row(rows[i].name, test_open_fds() == open_before);
        while (waitpid(-1, NULL, 0) > 0)
            ; /* one that failed was a process too, and init reaps it */
    }
}

static int set_up(void **state)
{
    (void)state;
    /* What we inherited from whoever runs the tests is not the command's to inherit. */
    (void)sys_close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
    (void)close(WIRE_PROC_FD);
    if (confine_open_proc() < 0)
        return -1;
    /* Nor are groups and blocked signals, which init has too. */
    sigset_t all;
    (void)sigfillset(&all);
    if (setgroups(1, &(gid_t){4711}) < 0 || sigprocmask(SIG_SETMASK, &all, NULL) < 0)
        return -1;
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_streams), cmocka_unit_test(test_strings),
        cmocka_unit_test(test_path),    cmocka_unit_test(test_stdin),
        cmocka_unit_test(test_user),    cmocka_unit_test(test_root),
        cmocka_unit_test(test_limits),  cmocka_unit_test(test_folder_and_descriptors),
        cmocka_unit_test(test_session), cmocka_unit_test(test_filters),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests_name("init/command", tests, set_up, NULL);
}
