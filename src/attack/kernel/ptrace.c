/*
 * ptrace: takes over another process: PID 1 has capabilities, and setting up a filter for a traced child could be
 * undone.
 */
#include "attack/attack.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    pid_t child = fork();

    if (child == 0) {
        (void)pause();
        _exit(0);
    }
    TRY(attempt, "a child", syscall(SYS_ptrace, PTRACE_SEIZE, child, 0, 0), EPERM, ENOSYS);
    (void)kill(child, SIGKILL);
    (void)waitpid(child, NULL, 0);
    TRY(attempt, "PID 1", syscall(SYS_ptrace, PTRACE_SEIZE, 1, 0, 0), EPERM, ENOSYS);
    TRY(attempt, "oneself", syscall(SYS_ptrace, PTRACE_TRACEME, 0, 0, 0), EPERM, ENOSYS);
}

const struct attack attack_ptrace = {
    .name = "ptrace",
    .tries = "tracing oneself, a child and PID 1",
    .group = ATTACK_KERNEL,
    .control = CONTROL_APART,
    .inside = inside,
};
