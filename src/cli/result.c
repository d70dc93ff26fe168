#include "cli/result.h"

#include "base/fd.h"
#include "base/utf8.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    DISK_FULL_BELOW = 4096,
    IMAGE_FULL_BELOW = 1 << 20, /* ext4 refuses a little before the last block */
};

static const char *const limit_names[] = {
    [LIMIT_NONE] = NULL,   [LIMIT_TIME] = "time",           [LIMIT_MEMORY] = "memory", [LIMIT_PROCESSES] = "processes",
    [LIMIT_DISK] = "disk", [LIMIT_FILE_SIZE] = "file_size",
};

enum run_limit result_limit(const struct result *result)
{
    const struct wire_exit *exit = &result->exit;
    uint64_t disk_full_below = result->disk_is_image ? IMAGE_FULL_BELOW : DISK_FULL_BELOW;

    if (result->timed_out)
        return LIMIT_TIME;
    if (result->oom_kills > 0)
        return LIMIT_MEMORY;
    /* A command that ended well was not stopped by what follows. */
    if (result->has_exit && exit->kind == WIRE_EXIT_CODE && exit->value == 0)
        return LIMIT_NONE;
    if (result->has_exit && exit->kind == WIRE_EXIT_SIGNAL && exit->value == SIGXFSZ && result->file_bytes != 0)
        return LIMIT_FILE_SIZE;
    if (result->processes_refused > 0)
        return LIMIT_PROCESSES;
    if (result->has_exit && exit->kind != WIRE_EXIT_NOT_STARTED &&
        (exit->disk_free_bytes < disk_full_below || exit->disk_free_inodes == 0))
        return LIMIT_DISK;
    return LIMIT_NONE;
}

int result_status(const struct result *result)
{
    if (result->timed_out)
        return EXIT_TIMEOUT;
    if (!result->has_exit)
        return result->oom_kills > 0 ? 128 + SIGKILL : EXIT_HUTCH;
    switch ((enum wire_exit_kind)result->exit.kind) {
    case WIRE_EXIT_CODE:
        return (int)(result->exit.value & 0xff);
    case WIRE_EXIT_SIGNAL:
        return 128 + (int)(result->exit.value & 0x7f);
    case WIRE_EXIT_NOT_STARTED:
        if (result->exit.failed != WIRE_FAILED_PROGRAM)
            return EXIT_HUTCH;
        /* What is wrong with the program is the program's; what is wrong with starting it is ours. */
        switch (result->exit.value) {
        case ENOENT:
        case ENOTDIR:
            return EXIT_NOT_FOUND;
        case EACCES:
        case ENOEXEC:
        case EISDIR:
        case ELOOP:
        case ETXTBSY:
        case EPERM:
        case ELIBBAD:
            return EXIT_NOT_EXECUTABLE;
        default:
            return EXIT_HUTCH;
        }
    default:
        return EXIT_HUTCH;
    }
}

static void print_size(char text[32], uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double amount = (double)bytes;
    size_t unit = 0;

    while (amount >= 1024 && unit < 4) {
        amount /= 1024;
        unit++;
    }
    (void)snprintf(text, 32, amount == (double)(uint64_t)amount ? "%.0f %s" : "%.1f %s", amount, units[unit]);
}

static void explain_not_started(const struct result *result, const struct run_options *options)
{
    const char *command = options->command[0];

    if (result->exit.failed == WIRE_FAILED_FOLDER) {
        (void)fprintf(stderr, "hutch: the working folder %s: %s (--workdir)\n", options->folder,
                      strerror((int)result->exit.value));
        return;
    }
    if (result->exit.failed == WIRE_FAILED_SETUP && result->exit.value != E2BIG) {
        (void)fprintf(stderr, "hutch: preparing the process for %s: %s\n", command, strerror((int)result->exit.value));
        return;
    }
    if (result->exit.failed == WIRE_FAILED_TERMINAL) {
        (void)fprintf(stderr, "hutch: making a terminal in the sandbox: %s (--tty)\n",
                      strerror((int)result->exit.value));
        return;
    }
    switch (result->exit.value) {
    case ENOENT:
        if (options->only_count > 0)
            (void)fprintf(stderr, "hutch: %s: not among the programs that may be executed (--only)\n", command);
        else if (strchr(command, '/') == NULL)
            (void)fprintf(stderr, "hutch: %s: command not found in the sandbox\n", command);
        else
            (void)fprintf(stderr, "hutch: %s: no such file in the sandbox, or no interpreter for it\n", command);
        break;
    case E2BIG:
        (void)fprintf(stderr, "hutch: %s: the arguments and the environment are too long\n", command);
        break;
    default:
        (void)fprintf(stderr, "hutch: %s: %s%s\n", command, strerror((int)result->exit.value),
                      options->only_count > 0 && result->exit.value == EACCES ? " (--only lists what may be executed)"
                                                                              : "");
    }
}

/* A compiler that may not make code crashes with what only its authors understand. */
static void explain_crash(const struct result *result, const struct run_options *options)
{
    static const int crashes[] = {SIGTRAP, SIGILL, SIGABRT, SIGSEGV};
    bool has_node = false;
    bool is_crash = false;

    for (size_t i = 0; i < options->only_count; i++) {
        const char *slash = strrchr(options->only[i], '/');
        has_node = has_node || strncmp(slash != NULL ? slash + 1 : options->only[i], "node", 4) == 0;
    }
    for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++)
        is_crash = is_crash || result->exit.value == (uint32_t)crashes[i];
    if (has_node && is_crash)
        (void)fprintf(stderr, "hutch: with --only no program can make code at run time: node needs --jitless\n");
}

void result_explain(const struct result *result, const struct run_options *options)
{
    char size[32];

    switch (result_limit(result)) {
    case LIMIT_TIME:
        (void)fprintf(stderr, "hutch: the time limit of %g s was reached (--timeout)\n",
                      (double)options->timeout_ms / 1000);
        return;
    case LIMIT_MEMORY:
        print_size(size, options->memory_bytes);
        (void)fprintf(stderr, "hutch: the memory limit of %s was reached (--memory)\n", size);
        return;
    case LIMIT_PROCESSES:
        (void)fprintf(stderr, "hutch: the limit of %llu processes was reached (--processes)\n",
                      (unsigned long long)options->processes);
        return;
    case LIMIT_DISK:
        print_size(size, options->disk_bytes);
        (void)fprintf(stderr, "hutch: the disk limit of %s was reached (--disk)\n", size);
        return;
    case LIMIT_FILE_SIZE:
        print_size(size, options->file_bytes);
        (void)fprintf(stderr, "hutch: the file size limit of %s was reached (--file-size)\n", size);
        return;
    case LIMIT_NONE:
        break;
    }
    if (result->has_exit && result->exit.kind == WIRE_EXIT_NOT_STARTED)
        explain_not_started(result, options);
    if (result->has_exit && result->exit.kind == WIRE_EXIT_SIGNAL)
        explain_crash(result, options);
}

static uint64_t cpu_us(const struct result *result)
{
    return result->has_usage ? result->usage.cpu_us : result->exit.user_us + result->exit.system_us;
}

void result_print_stats(const struct result *result)
{
    char peak[32];
    char command_peak[32];
    enum run_limit limit = result_limit(result);

    print_size(peak, result->usage.memory_peak_bytes);
    print_size(command_peak, result->exit.peak_bytes);
    (void)fprintf(stderr, "hutch: %.3f ms in all, %.3f ms until the sandbox was ready, %.3f ms in the command\n",
                  (double)result->total_ns / 1e6, (double)result->ready_ns / 1e6,
                  (double)result->exit.duration_ns / 1e6);
    for (uint32_t step = STEP_REQUEST; step < STEP_COUNT; step++) {
        if (result->steps_ns[step] > 0)
            (void)fprintf(stderr, "hutch:   %-10s %8.3f ms  %s\n", step_name(step),
                          (double)result->steps_ns[step] / 1e6, step_words(step));
    }
    (void)fprintf(stderr, "hutch: Landlock scopes: %s\n",
                  (result->features & (WIRE_HELLO_SCOPED_SIGNALS | WIRE_HELLO_SCOPED_SOCKETS)) != 0
                      ? "signals, abstract sockets"
                      : "none, this kernel has none (Linux 6.12)");
    (void)fprintf(stderr, "hutch: CPU %.3f ms, memory peak %s (command %s), processes peak %u\n",
                  (double)cpu_us(result) / 1e3, peak, command_peak, result->usage.processes_peak);
    (void)fprintf(stderr, "hutch: limit reached: %s\n", limit == LIMIT_NONE ? "none" : limit_names[limit]);
}

static const char *yes_or_no(const struct result *result, uint32_t feature)
{
    return (result->features & feature) != 0 ? "true" : "false";
}

static int append_steps(struct buf *json, const struct result *result)
{
    const char *comma = "";
    int r = buf_printf(json, "\"steps_us\":{");

    for (uint32_t step = STEP_REQUEST; r == 0 && step < STEP_COUNT; step++) {
        if (result->steps_ns[step] == 0)
            continue;
        r = buf_printf(json, "%s\"%s\":%llu", comma, step_name(step),
                       (unsigned long long)(result->steps_ns[step] / 1000));
        comma = ",";
    }
    return r < 0 ? r : buf_printf(json, "}");
}

/* Text that was cut at the cap ends before the character that the cap cut through. */
static int append_output(struct buf *json, const char *name, const struct sink *sink, uint64_t total)
{
    size_t length = sink->collected.length;

    if (total > length)
        length = utf8_cut(sink->collected.data, length);
    int r = buf_printf(json, "\"%s\":", name);
    if (r == 0)
        r = buf_append_json(json, sink->collected.data, length);
    return r < 0 ? r : buf_printf(json, ",\"%s_bytes\":%llu,", name, (unsigned long long)total);
}

int result_print_json(const struct result *result, const struct sink *out, const struct sink *err_out,
                      const struct buf *network)
{
    struct buf json = buf_init(64 << 20);
    enum run_limit limit = result_limit(result);
    const struct wire_exit *exit = &result->exit;
    bool truncated = exit->stdout_total > out->collected.length || exit->stderr_total > err_out->collected.length;

    int r = buf_printf(&json, "{\"exit_code\":%d,\"timed_out\":%s,\"limit\":%s%s%s,\"truncated\":%s,",
                       result_status(result), result->timed_out ? "true" : "false", limit == LIMIT_NONE ? "" : "\"",
                       limit == LIMIT_NONE ? "null" : limit_names[limit], limit == LIMIT_NONE ? "" : "\"",
                       truncated ? "true" : "false");
    if (r == 0)
        r = append_output(&json, "stdout", out, exit->stdout_total);
    if (r == 0)
        r = append_output(&json, "stderr", err_out, exit->stderr_total);
    if (r == 0)
        r = buf_printf(&json,
                       "\"duration_ms\":%.3f,\"total_ms\":%.3f,\"ready_ms\":%.3f,\"usage\":{\"cpu_ms\":%.3f,"
                       "\"memory_peak_bytes\":%llu,\"processes_peak\":%u},",
                       (double)exit->duration_ns / 1e6, (double)result->total_ns / 1e6, (double)result->ready_ns / 1e6,
                       (double)cpu_us(result) / 1e3, (unsigned long long)result->usage.memory_peak_bytes,
                       result->usage.processes_peak);
    if (r == 0)
        r = buf_printf(&json, "\"landlock\":{\"signals\":%s,\"abstract_sockets\":%s},",
                       yes_or_no(result, WIRE_HELLO_SCOPED_SIGNALS), yes_or_no(result, WIRE_HELLO_SCOPED_SOCKETS));
    if (r == 0 && network->length > 0)
        r = buf_printf(&json, "\"network\":%.*s,", (int)network->length, (const char *)network->data);
    if (r == 0)
        r = append_steps(&json, result);
    if (r == 0)
        r = buf_printf(&json, "}\n");
    if (r == 0)
        r = fd_write_all(STDOUT_FILENO, json.data, json.length);
    buf_release(&json);
    return r;
}

void result_print_error(const struct error *err, uint32_t step, bool json)
{
    struct buf text = buf_init(8192);

    if (step != STEP_NONE && step != STEP_REQUEST)
        (void)fprintf(stderr, "hutch: failed while %s (step %s): %s\n", step_words(step), step_name(step),
                      err->message);
    else
        (void)fprintf(stderr, "hutch: %s\n", err->message);
    if (!json)
        return;
    int r = buf_printf(&text, "{\"error\":{\"code\":\"%s\",\"step\":\"%s\",\"message\":", error_code_name(err->code),
                       step_name(step));
    if (r == 0)
        r = buf_append_json(&text, err->message, strlen(err->message));
    if (r == 0)
        r = buf_printf(&text, "}}\n");
    if (r == 0)
        ignore_result(fd_write_all(STDOUT_FILENO, text.data, text.length));
    buf_release(&text);
}
