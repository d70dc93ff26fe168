/*
 * perf-events: counters that see other processes and the kernel, with a history of holes (CVE-2013-2094,
 * CVE-2023-5717).
 */
#include "attack/attack.h"

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    struct perf_event_attr own = {.type = PERF_TYPE_SOFTWARE, .size = sizeof own, .exclude_kernel = 1};
    struct perf_event_attr all = {.type = PERF_TYPE_SOFTWARE, .size = sizeof all};

    TRY(attempt, "its own", syscall(SYS_perf_event_open, &own, 0, -1, -1, 0), EPERM, ENOSYS);
    TRY(attempt, "a CPU's", syscall(SYS_perf_event_open, &all, -1, 0, -1, 0), EPERM, ENOSYS);
}

const struct attack attack_perf_events = {
    .name = "perf-events",
    .tries = "watching CPU, processes and kernel with perf_event_open",
    .group = ATTACK_KERNEL,
    .control = CONTROL_APART,
    .inside = inside,
};
