/*
 * real-time: a priority above everybody else's stops the machine's own work.
 */
#include "attack/attack.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    struct sched_param parameter = {.sched_priority = 1};

    TRY(attempt, "SCHED_FIFO", syscall(SYS_sched_setscheduler, 0, SCHED_FIFO, &parameter), EPERM);
    TRY(attempt, "SCHED_RR", syscall(SYS_sched_setscheduler, 0, SCHED_RR, &parameter), EPERM);
    TRY(attempt, "nice -20", setpriority(PRIO_PROCESS, 0, -20), EACCES, EPERM);
    TRY(attempt, "ioprio real-time", syscall(SYS_ioprio_set, 1, 0, 1 << 13), EPERM, ENOSYS);
}

const struct attack attack_real_time = {
    .name = "real-time",
    .tries = "real-time and raised priorities",
    .group = ATTACK_KERNEL,
    .control = CONTROL_APART,
    .inside = inside,
};
