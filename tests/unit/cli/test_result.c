#include "cli/result.h"
#include "test.h"

#include <signal.h>
#include <stdio.h>

#define MIB (UINT64_C(1) << 20)

/* A command that ended with `exit`, on a disk with room. */
#define ENDED(kind_, value_)                                                                                           \
    .has_exit = true, .exit = {.kind = (kind_), .value = (value_), .disk_free_bytes = MIB, .disk_free_inodes = 9}

static const struct {
    const char *name;
    struct result result;
    int status;
    enum run_limit limit;
} rows[] = {
    {"success", {ENDED(WIRE_EXIT_CODE, 0)}, 0, LIMIT_NONE},
    {"failure", {ENDED(WIRE_EXIT_CODE, 7)}, 7, LIMIT_NONE},
    {"the largest code", {ENDED(WIRE_EXIT_CODE, 255)}, 255, LIMIT_NONE},
    {"a code that can't be", {ENDED(WIRE_EXIT_CODE, 256 + 3)}, 3, LIMIT_NONE},
    {"a signal", {ENDED(WIRE_EXIT_SIGNAL, SIGTERM)}, 143, LIMIT_NONE},
    {"a signal that can't be", {ENDED(WIRE_EXIT_SIGNAL, UINT32_MAX)}, 255, LIMIT_NONE},
    {"a kind that can't be", {ENDED(9, 0)}, 125, LIMIT_NONE},
    {"no such command", {ENDED(WIRE_EXIT_NOT_STARTED, ENOENT)}, 127, LIMIT_NONE},
    {"no such folder", {ENDED(WIRE_EXIT_NOT_STARTED, ENOTDIR)}, 127, LIMIT_NONE},
    {"not executable", {ENDED(WIRE_EXIT_NOT_STARTED, EACCES)}, 126, LIMIT_NONE},
    {"no program", {ENDED(WIRE_EXIT_NOT_STARTED, ENOEXEC)}, 126, LIMIT_NONE},
    {"arguments too long", {ENDED(WIRE_EXIT_NOT_STARTED, E2BIG)}, 125, LIMIT_NONE},
    {"ours", {ENDED(WIRE_EXIT_NOT_STARTED, EAGAIN)}, 125, LIMIT_NONE},
    {"no working folder",
     {.has_exit = true, .exit = {.kind = WIRE_EXIT_NOT_STARTED, .value = ENOENT, .failed = WIRE_FAILED_FOLDER}},
     125,
     LIMIT_NONE},
    {"no way to start it",
     {.has_exit = true, .exit = {.kind = WIRE_EXIT_NOT_STARTED, .value = EPERM, .failed = WIRE_FAILED_SETUP}},
     125,
     LIMIT_NONE},
    {"no terminal",
     {.has_exit = true, .exit = {.kind = WIRE_EXIT_NOT_STARTED, .value = ENOENT, .failed = WIRE_FAILED_TERMINAL}},
     125,
     LIMIT_NONE},
    {"never heard of again", {0}, 125, LIMIT_NONE},
    {"too late", {.timed_out = true, ENDED(WIRE_EXIT_SIGNAL, SIGKILL)}, 124, LIMIT_TIME},
    {"too late, and nothing said", {.timed_out = true}, 124, LIMIT_TIME},
    {"too late and too much memory", {.timed_out = true, .oom_kills = 1}, 124, LIMIT_TIME},
    {"too much memory", {.oom_kills = 1, ENDED(WIRE_EXIT_SIGNAL, SIGKILL)}, 137, LIMIT_MEMORY},
    {"too much memory, survived", {.oom_kills = 2, ENDED(WIRE_EXIT_CODE, 0)}, 0, LIMIT_MEMORY},
    {"init itself went", {.oom_kills = 1}, 137, LIMIT_MEMORY},
    {"too large a file", {ENDED(WIRE_EXIT_SIGNAL, SIGXFSZ), .file_bytes = 100}, 128 + SIGXFSZ, LIMIT_FILE_SIZE},
    {"SIGXFSZ without a limit", {ENDED(WIRE_EXIT_SIGNAL, SIGXFSZ)}, 128 + SIGXFSZ, LIMIT_NONE},
    {"too many processes", {.processes_refused = 1, ENDED(WIRE_EXIT_CODE, 1)}, 1, LIMIT_PROCESSES},
    {"too many processes, coped", {.processes_refused = 1, ENDED(WIRE_EXIT_CODE, 0)}, 0, LIMIT_NONE},
    {"disk full",
     {.has_exit = true, .exit = {.value = 1, .disk_free_bytes = 4095, .disk_free_inodes = 1}},
     1,
     LIMIT_DISK},
    {"disk nearly full",
     {.has_exit = true, .exit = {.value = 1, .disk_free_bytes = 4096, .disk_free_inodes = 1}},
     1,
     LIMIT_NONE},
    {"almost full, an image",
     {.has_exit = true, .disk_is_image = true, .exit = {.value = 1, .disk_free_bytes = MIB - 1, .disk_free_inodes = 1}},
     1,
     LIMIT_DISK},
    {"not full, an image",
     {.has_exit = true, .disk_is_image = true, .exit = {.value = 1, .disk_free_bytes = MIB, .disk_free_inodes = 1}},
     1,
     LIMIT_NONE},
    {"out of inodes", {.has_exit = true, .exit = {.value = 1, .disk_free_bytes = MIB}}, 1, LIMIT_DISK},
    {"disk full, coped", {.has_exit = true}, 0, LIMIT_NONE},
    {"disk full, not started",
     {.has_exit = true, .exit = {.kind = WIRE_EXIT_NOT_STARTED, .value = ENOENT}},
     127,
     LIMIT_NONE},
};

TEST(test_status)
{
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_row(rows[i].name, result_status(&rows[i].result) == rows[i].status);
}

TEST(test_limit)
{
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_row(rows[i].name, result_limit(&rows[i].result) == rows[i].limit);
}

/* From here until caught() what is written to `fd` goes into memory. */
struct capture {
    int fd;
    int saved;
    int memory;
    char text[8192];
};

static struct capture capture(int fd)
{
    struct capture capture = {.fd = fd, .saved = dup(fd), .memory = (int)syscall(SYS_memfd_create, "capture", 0)};

    assert_true(capture.saved >= 0 && capture.memory >= 0);
    (void)fflush(NULL);
    assert_return_code(dup2(capture.memory, fd), errno);
    return capture;
}

static const char *caught(struct capture *capture)
{
    (void)fflush(NULL);
    (void)dup2(capture->saved, capture->fd);
    ssize_t n = pread(capture->memory, capture->text, sizeof capture->text - 1, 0);
    (void)close(capture->saved);
    (void)close(capture->memory);
    assert_true(n >= 0);
    return capture->text;
}

static void assert_explains(const struct result *result, const char *expected)
{
    char *command[] = {(char *)(uintptr_t) "prog", NULL};
    struct run_options options = {.memory_bytes = 512 * MIB,
                                  .disk_bytes = 1536,
                                  .processes = 20,
                                  .timeout_ms = 1500,
                                  .file_bytes = 100,
                                  .folder = "/workspace",
                                  .command = command};
    struct capture err = capture(STDERR_FILENO);

    result_explain(result, &options);
    assert_string_equal(caught(&err), expected);
}

/* What a list of programs has to do with it. */
TEST(test_explain_only)
{
    static const struct {
        enum wire_exit_kind kind;
        uint32_t value;
        const char *listed;
        const char *expected;
    } texts[] = {
        {WIRE_EXIT_NOT_STARTED, ENOENT, "ls", "hutch: prog: not among the programs that may be executed (--only)\n"},
        {WIRE_EXIT_NOT_STARTED, EACCES, "ls", "hutch: prog: Permission denied (--only lists what may be executed)\n"},
        {WIRE_EXIT_SIGNAL, SIGTRAP, "/usr/bin/nodejs",
         "hutch: with --only no program can make code at run time: node needs --jitless\n"},
        {WIRE_EXIT_SIGNAL, SIGTRAP, "ls", ""},
        {WIRE_EXIT_SIGNAL, SIGTERM, "node", ""},
        {WIRE_EXIT_CODE, 1, "node", ""},
    };

    for (size_t i = 0; i < COUNT(texts); i++) {
        char *command[] = {(char *)(uintptr_t) "prog", NULL};
        struct run_options options = {.command = command, .only = {"cat", texts[i].listed}, .only_count = 2};
        struct result result = {ENDED(texts[i].kind, texts[i].value)};
        struct capture err = capture(STDERR_FILENO);
        result_explain(&result, &options);
        assert_string_equal(caught(&err), texts[i].expected);
    }
}

TEST(test_explain)
{
    const struct {
        struct result result;
        const char *expected;
    } texts[] = {
        {{ENDED(WIRE_EXIT_CODE, 1)}, ""},
        {{.timed_out = true}, "hutch: the time limit of 1.5 s was reached (--timeout)\n"},
        {{.oom_kills = 1}, "hutch: the memory limit of 512 MiB was reached (--memory)\n"},
        {{.has_exit = true, .exit.value = 1}, "hutch: the disk limit of 1.5 KiB was reached (--disk)\n"},
        {{.processes_refused = 1}, "hutch: the limit of 20 processes was reached (--processes)\n"},
        {{ENDED(WIRE_EXIT_SIGNAL, SIGXFSZ), .file_bytes = 100},
         "hutch: the file size limit of 100 B was reached (--file-size)\n"},
        {{ENDED(WIRE_EXIT_NOT_STARTED, ENOENT)}, "hutch: prog: command not found in the sandbox\n"},
        {{ENDED(WIRE_EXIT_NOT_STARTED, EACCES)}, "hutch: prog: Permission denied\n"},
        {{.has_exit = true, .exit = {.kind = WIRE_EXIT_NOT_STARTED, .value = ENOENT, .failed = WIRE_FAILED_FOLDER}},
         "hutch: the working folder /workspace: No such file or directory (--workdir)\n"},
        {{.has_exit = true, .exit = {.kind = WIRE_EXIT_NOT_STARTED, .value = EIO, .failed = WIRE_FAILED_TERMINAL}},
         "hutch: making a terminal in the sandbox: Input/output error (--tty)\n"},
    };

    for (size_t i = 0; i < COUNT(texts); i++)
        assert_explains(&texts[i].result, texts[i].expected);
}

static struct sink collect(const char *text)
{
    struct sink sink;

    sink_init(&sink, -1, 1000);
    assert_int_equal(sink_take(&sink, 0, text, strlen(text)), 0);
    return sink;
}

static void assert_json(const struct result *result, const char *out, const char *err, const char *expected)
{
    struct sink sinks[] = {collect(out), collect(err)};
    struct capture json = capture(STDOUT_FILENO);

    int r = result_print_json(result, &sinks[0], &sinks[1], &(struct buf){0});
    assert_string_equal(caught(&json), expected);
    assert_int_equal(r, 0);
    sink_release(&sinks[0]);
    sink_release(&sinks[1]);
}

TEST(test_json)
{
    struct result result = {
        .has_exit = true,
        .exit = {.value = 3, .disk_free_bytes = MIB, .disk_free_inodes = 1, .stdout_total = 5, .duration_ns = 1500000},
        .has_usage = true,
        .usage = {.cpu_us = 2500, .memory_peak_bytes = 4096, .processes_peak = 2},
        .features = WIRE_HELLO_SCOPED_SIGNALS,
        .total_ns = 3000000,
        .ready_ns = 1000,
        .steps_ns = {[STEP_REQUEST] = 5000, [STEP_CLONE] = 7000},
    };

    assert_json(
        &result, "a\"b\n\xff", "",
        "{\"exit_code\":3,\"timed_out\":false,\"limit\":null,\"truncated\":false,\"stdout\":\"a\\\"b\\n\xef\xbf\xbd\","
        "\"stdout_bytes\":5,\"stderr\":\"\",\"stderr_bytes\":0,\"duration_ms\":1.500,\"total_ms\":3.000,"
        "\"ready_ms\":0.001,\"usage\":{\"cpu_ms\":2.500,\"memory_peak_bytes\":4096,\"processes_peak\":2},"
        "\"landlock\":{\"signals\":true,\"abstract_sockets\":false},\"steps_us\":{\"request\":5,\"clone\":7}}\n");
}

/* Output that was cut ends before the character that the cap cut through; output that was not is left as it is. */
TEST(test_json_cut)
{
    struct result result = {.timed_out = true,
                            .exit = {.stdout_total = 9, .stderr_total = 3, .user_us = 1000, .system_us = 500}};

    assert_json(&result, "ab\xe2\x82", "x\xe2\x82",
                "{\"exit_code\":124,\"timed_out\":true,\"limit\":\"time\",\"truncated\":true,\"stdout\":\"ab\","
                "\"stdout_bytes\":9,\"stderr\":\"x\xef\xbf\xbd\xef\xbf\xbd\",\"stderr_bytes\":3,\"duration_ms\":0.000,"
                "\"total_ms\":0.000,\"ready_ms\":0.000,\"usage\":{\"cpu_ms\":1.500,\"memory_peak_bytes\":0,"
                "\"processes_peak\":0},\"landlock\":{\"signals\":false,\"abstract_sockets\":false},\"steps_us\":{}}\n");
}

TEST(test_stats)
{
    struct result result = {ENDED(WIRE_EXIT_CODE, 1), .processes_refused = 1, .steps_ns = {[STEP_DEV] = 1500000}};
    struct capture err = capture(STDERR_FILENO);

    result_print_stats(&result);
    const char *text = caught(&err);
    assert_non_null(strstr(text, "limit reached: processes\n"));
    assert_non_null(strstr(text, "dev           1.500 ms  making /dev\n"));
    assert_null(strstr(text, "making the cgroups"));
    assert_non_null(strstr(text, "Landlock scopes: none, "));
    result.features = WIRE_HELLO_SCOPED_SIGNALS | WIRE_HELLO_SCOPED_SOCKETS;
    err = capture(STDERR_FILENO);
    result_print_stats(&result);
    assert_non_null(strstr(caught(&err), "Landlock scopes: signals, abstract sockets\n"));
}

TEST(test_error)
{
    struct error err = {0};

    (void)error_set(&err, ERROR_SYSTEM, EPERM, "a \"b\"");
    struct capture json = capture(STDOUT_FILENO);
    struct capture text = capture(STDERR_FILENO);
    result_print_error(&err, STEP_CLONE, true);
    assert_string_equal(caught(&text),
                        "hutch: failed while cloning into new namespaces (step clone): a \"b\": Operation "
                        "not permitted\n");
    assert_string_equal(caught(&json), "{\"error\":{\"code\":\"system\",\"step\":\"clone\",\"message\":\"a \\\"b\\\": "
                                       "Operation not permitted\"}}\n");
    json = capture(STDOUT_FILENO);
    text = capture(STDERR_FILENO);
    result_print_error(&err, STEP_NONE, false);
    assert_string_equal(caught(&text), "hutch: a \"b\": Operation not permitted\n");
    assert_string_equal(caught(&json), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_status), cmocka_unit_test(test_limit),        cmocka_unit_test(test_explain),
        cmocka_unit_test(test_json),   cmocka_unit_test(test_json_cut),     cmocka_unit_test(test_stats),
        cmocka_unit_test(test_error),  cmocka_unit_test(test_explain_only),
    };
    return cmocka_run_group_tests_name("cli/result", tests, NULL, NULL);
}
