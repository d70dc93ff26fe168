/*
 * clock: the clock is the machine's. With times that are none, so that it stays as it is.
 */
#include "attack/attack.h"

#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    struct timespec never = {.tv_sec = -1, .tv_nsec = -1};
    struct timeval never_either = {.tv_sec = -1, .tv_usec = -1};
    struct timex bad = {.modes = ADJ_TICK, .tick = -1};

    TRY(attempt, "clock_settime", syscall(SYS_clock_settime, CLOCK_REALTIME, &never), EPERM, ENOSYS);
    TRY(attempt, "settimeofday", syscall(SYS_settimeofday, &never_either, NULL), EPERM, ENOSYS);
    TRY(attempt, "clock_adjtime", syscall(SYS_clock_adjtime, CLOCK_REALTIME, &bad), EPERM, ENOSYS);
    TRY(attempt, "adjtimex", syscall(SYS_adjtimex, &bad), EPERM, ENOSYS);
}

const struct attack attack_clock = {
    .name = "clock",
    .tries = "setting the clock",
    .group = ATTACK_KERNEL,
    .control = CONTROL_APART,
    .inside = inside,
};
