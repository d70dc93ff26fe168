/*
 * command: starting a command: its cgroup, its user, its limits, its filter, and execve.
 *
 * INSIDE THE SANDBOX, as PID 1; the started process gives up everything before it runs foreign code.
 */
#pragma once

#include "wire/wire.h"

#include <sys/types.h>

/* What stays with init: the pipes' ends, or those of a terminal. */
struct command_pipes {
    int stdin_fd;  /* -1 when the command has /dev/null or a terminal */
    int stdout_fd; /* of a terminal: its master, for both ways */
    int stderr_fd; /* of a terminal: -1 */
    int slave_fd;  /* of a terminal, else -1 */
};

/*
 * Start `exec`, with its strings in `strings` (argc arguments, then envc environment entries, each ending in NUL).
 * `cgroup_fd` is the folder of its own cgroup or -1. 0, or -errno with what it failed at: with the program, -ENOENT
 * when there is none, -EACCES and others when it can't be executed.
 */
_must_use_ int command_start(const struct wire_exec *exec, const char *strings, size_t length, int cgroup_fd,
                             struct command_pipes *ret_pipes, pid_t *ret_pid, enum wire_failed *ret_failed);
