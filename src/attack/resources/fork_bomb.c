/*
 * fork-bomb: processes that make processes, each as many as it can.
 */
#include "attack/attack.h"
#include "attack/work.h"

#include <signal.h>
#include <unistd.h>

static _Noreturn void multiply(void)
{
    for (;;) {
        if (fork() < 0)
            (void)usleep(1000);
    }
}

static void inside(struct attempt *attempt)
{
    uint64_t deadline_ns = work_deadline_ns(5000);
    long last = 0;
    int error = 0;

    for (int i = 0; i < 8; i++) {
        if (fork() == 0)
            multiply();
    }
    while (last >= 0 && work_goes_on(deadline_ns)) {
        last = attempt_only_parent(fork());
        error = errno;
    }
    TRIED(attempt, "one more", last, error, EAGAIN);
    attempt_say(attempt, "how many", work_count_processes() <= 64, "%u", work_count_processes());
}

const struct attack attack_fork_bomb = {
    .name = "fork-bomb",
    .tries = "processes without end",
    .group = ATTACK_RESOURCES,
    .variants = AS_NOBODY | AS_ROOT,
    .inside = inside,
    .options = {"--processes", "64"},
};
