/*
 * process: programs that the referee starts, and what they leave behind.
 *
 * The referee is the reaper of all its descendants (process_adopt_orphans), so that the end of a run is the end of
 * every process of it. All of them die with the referee.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct process {
    const char *const *argv;
    const char *const *envp;
    int fds[3];          /* its standard streams; -1: /dev/null */
    int (*before)(void); /* in the new process; it ends unless that answers 0 */
};

/* -errno, or the pid. */
_must_use_ pid_t process_start(const struct process *process);

/* The status as shells tell it: the exit code, or 128 and the signal. */
int process_status(int wait_status);

_must_use_ int process_adopt_orphans(void);

/* Wait until no child is left but these; false when some stay for longer than the limit. */
bool process_reap_others(const pid_t *known, size_t count, unsigned limit_ms);

/* Kill and wait; the status. Nothing happens for a pid of 0. */
int process_end(pid_t *pid);
