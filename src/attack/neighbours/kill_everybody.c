/*
 * kill-everybody: a signal to everything one may signal ends at the border of the sandbox: whoever else is hit tells
 * (the canaries do).
 */
#include "attack/attack.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    int status = 0;
    pid_t victim = fork();

    if (victim == 0) {
        (void)pause();
        _exit(0);
    }
    /* All but the sender and PID 1. */
    (void)kill(-1, SIGKILL);
    (void)waitpid(victim, &status, 0);
    attempt_say(attempt, "kill -1", WIFSIGNALED(status), "it did not even hit a child");
}

const struct attack attack_kill_everybody = {
    .name = "kill-everybody",
    .tries = "SIGKILL to every process there is",
    .group = ATTACK_NEIGHBOURS,
    .inside = inside,
};
