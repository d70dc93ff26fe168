/*
 * kill-init: PID 1 of the sandbox, whose end would be the end of what watches the commands.
 */
#include "attack/attack.h"

#include <signal.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    static const int signals[] = {SIGKILL, SIGSTOP, SIGTERM, SIGSEGV, SIGUSR1};

    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        (void)kill(1, signals[i]);
    (void)usleep(20000);
    /* Had it worked, nobody would hear this. */
    attempt_say(attempt, "PID 1", true, "still there");
}

const struct attack attack_kill_init = {
    .name = "kill-init",
    .tries = "ending and stopping PID 1",
    .group = ATTACK_NEIGHBOURS,
    .inside = inside,
};
