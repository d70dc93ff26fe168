/*
 * pending-signals: queued signals and timers are counted per user as well.
 */
#include "attack/attack.h"

#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    sigset_t blocked;
    union sigval value = {0};
    timer_t timer;
    long count = 0;
    int r = 0;

    (void)sigfillset(&blocked);
    (void)sigprocmask(SIG_BLOCK, &blocked, NULL);
    for (; r == 0 && count < 4000000; count++)
        r = sigqueue(getpid(), SIGRTMIN, value);
    TRIED(attempt, "signals", r, errno, EAGAIN);
    TRY(attempt, "a timer", timer_create(CLOCK_MONOTONIC, NULL, &timer), EAGAIN, ENOMEM);
}

const struct attack attack_pending_signals = {
    .name = "pending-signals",
    .tries = "using up what is counted per user: signals, timers",
    .group = ATTACK_RESOURCES,
    .variants = AS_NOBODY,
    .inside = inside,
    .options = {"--memory", "256M"},
};
