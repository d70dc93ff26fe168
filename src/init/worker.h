/*
 * worker: a process of its own for one operation on files, so that PID 1 never waits for a file system.
 *
 * INSIDE THE SANDBOX. A copy of init that becomes the user it works for, with no capability a command of that user
 * would not have, before it looks at a path. It can't be looked into by others of that user (not dumpable), takes no
 * signal but SIGKILL and SIGSTOP, and its filter `files` leaves it no way to start anything. It lives in init's own
 * cgroup, so its memory counts as the sandbox's. Its exit status is 0 or an errno.
 */
#pragma once

#include "wire/wire.h"

#include <sys/types.h>

/* `ret_stdin` is -1 for an operation that takes nothing. 0 or -errno. */
_must_use_ int worker_start(const struct wire_file *file, int *ret_stdin, int *ret_stdout, pid_t *ret_pid);
