/*
 * signals: processes of the host and of a neighbour, by number and all at once.
 */
#include "attack/attack.h"

#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    pid_t host = (pid_t)attempt_canary_number("PID");

    TRY(attempt, "the host's process", kill(host, 0), ESRCH);
    TRY(attempt, "by descriptor", syscall(SYS_pidfd_open, host, 0), ESRCH, EINVAL);
}

const struct attack attack_signals = {
    .name = "signals",
    .tries = "signals to everybody and to a process of the host's",
    .group = ATTACK_NEIGHBOURS,
    .control = CONTROL_BESIDE,
    .inside = inside,
};
