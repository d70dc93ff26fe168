/*
 * stopped-processes: stopped processes do not see signals; neither does a tree of them.
 */
#include "attack/attack.h"

#include <signal.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    attempt_say(attempt, "stopping", true, "done");
    for (int i = 0; i < 3; i++) {
        if (fork() == 0)
            (void)setsid();
    }
    (void)raise(SIGSTOP);
    for (;;)
        (void)pause();
}

const struct attack attack_stopped_processes = {
    .name = "stopped-processes",
    .tries = "a stopped tree past its time",
    .group = ATTACK_RESOURCES,
    .variants = AS_NOBODY,
    .inside = inside,
    .options = {"--timeout", "300ms"},
    .status = 124,
    .limit = "time",
};
