/*
 * ignored-signals: a command that ignores every signal it can, past its time.
 */
#include "attack/attack.h"

#include <signal.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    for (int number = 1; number < 65; number++)
        (void)signal(number, SIG_IGN);
    attempt_say(attempt, "ignoring all signals", true, "done");
    for (;;)
        (void)pause();
}

const struct attack attack_ignored_signals = {
    .name = "ignored-signals",
    .tries = "outliving the time limit",
    .group = ATTACK_RESOURCES,
    .variants = AS_NOBODY,
    .inside = inside,
    .options = {"--timeout", "300ms"},
    .status = 124,
    .limit = "time",
};
