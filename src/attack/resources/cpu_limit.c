/*
 * cpu-limit: more CPU time than half a CPU's, with as many processes as it takes.
 */
#include "attack/attack.h"
#include "attack/work.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    struct rusage used = {0};
    uint64_t deadline_ns = work_deadline_ns(1000);

    for (int i = 0; i < 4; i++) {
        if (fork() != 0)
            continue;
        while (work_goes_on(deadline_ns))
            continue;
        _exit(0);
    }
    while (wait(NULL) > 0)
        continue;
    (void)getrusage(RUSAGE_CHILDREN, &used);
    long ms =
        (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000 + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1000;
    attempt_say(attempt, "half a CPU", ms < 800, "%ld ms in a second", ms);
}

const struct attack attack_cpu_limit = {
    .name = "cpu-limit",
    .tries = "more than half a CPU",
    .group = ATTACK_RESOURCES,
    .variants = AS_NOBODY,
    .inside = inside,
    .options = {"--cpus", "0.5"},
};
