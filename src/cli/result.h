/*
 * result: what became of a run, and telling it: the exit status, a line about a limit, --stats, --json.
 */
#pragma once

#include "cli/options.h"
#include "cli/sink.h"
#include "wire/steps.h"
#include "wire/wire.h"

enum run_limit { LIMIT_NONE, LIMIT_TIME, LIMIT_MEMORY, LIMIT_PROCESSES, LIMIT_DISK, LIMIT_FILE_SIZE };

enum { EXIT_TIMEOUT = 124, EXIT_HUTCH = 125, EXIT_NOT_EXECUTABLE = 126, EXIT_NOT_FOUND = 127 };

struct result {
    bool has_exit; /* the command ended and init told how */
    struct wire_exit exit;
    bool timed_out;
    bool has_usage;
    struct wire_usage usage;
    uint32_t oom_kills;
    uint32_t processes_refused;
    uint64_t file_bytes; /* the limit of a file, 0: none */
    bool disk_is_image;
    uint32_t features; /* WIRE_HELLO_*, as init said */
    uint64_t total_ns;
    uint64_t ready_ns; /* from the start of the program to init's HELLO */
    uint64_t steps_ns[STEP_COUNT];
};

/* Which limit was the reason for how it ended. */
enum run_limit result_limit(const struct result *result);

/* The exit status of `hutch run`. */
int result_status(const struct result *result);

/* On standard error: why it did not start, or which limit ended it. */
void result_explain(const struct result *result, const struct run_options *options);

void result_print_stats(const struct result *result);
/* `network`: what the airlock refused, as JSON; empty without one. */
int result_print_json(const struct result *result, const struct sink *out, const struct sink *err_out,
                      const struct buf *network);

/* Hutch itself failed: on standard error, and as JSON on standard output when that was asked for. */
void result_print_error(const struct error *err, uint32_t step, bool json);
