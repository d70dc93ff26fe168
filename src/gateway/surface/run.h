/*
 * run: a command that a call starts, and perhaps waits for. Shared by the tool shell_exec and the routes of execs.
 */
#pragma once

#include "gateway/engine/exec.h"
#include "gateway/surface/body.h"
#include "gateway/surface/call.h"

enum {
    RUN_COMMAND_MAX = (128 << 10) - 1, /* what Linux passes to a shell as its command */
    RUN_TIMEOUT_MAX_S = 366 * 86400,
    RUN_OUTPUT_DEFAULT = 1 << 20,
    RUN_OUTPUT_MAX = EXEC_CAP_MAX,
    RUN_ARGUMENTS_MAX = 4096,
};

/* As a body says it. */
struct run_wish {
    const char *command;
    const json_t *argv;
    const char *workdir;
    const json_t *env;
    const char *stdin_text;
    const char *encoding;
    struct body_number timeout_seconds; /* 0: until the sandbox's end */
    struct body_number output_bytes;
    struct body_switch wait;
    struct body_switch detach;
    struct body_switch stdin_open;
    const json_t *tty;
    struct body_number rows;
    struct body_number columns;
};

struct run {
    struct run_wish wish;
    struct call *call;
    struct exec_follower *follower;
    void (*ended)(struct run *run, const struct exec_result *result);
};

/* Start it: fills in call->exec. When it can't be, or may not be, that was answered: -errno. */
_must_use_ int run_start(struct run *run, struct call *call, struct sandbox *sandbox, bool collects, bool is_attached,
                         exec_done started, void *data, struct exec **ret_exec);

/*
 * Start it and call `ended` when it has; then the run's exec can be read. With `is_attached` it is killed when the
 * client goes.
 */
void run_and_wait(struct run *run, struct call *call, struct sandbox *sandbox, bool is_attached,
                  void (*ended)(struct run *run, const struct exec_result *result));

/* stdout, stderr, exit_code, timed_out, truncated and the like, of a run that has ended. */
void run_write_result(struct run *run, struct writer *writer, const struct exec_result *result);

/* Just the figures, without output. */
void run_write_figures(struct writer *writer, const struct exec_result *result);
