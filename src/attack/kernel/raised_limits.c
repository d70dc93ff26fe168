/*
 * raised-limits: limits of the process, raised above what they were set to.
 */
#include "attack/attack.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
    struct rlimit many = {1 << 20, 1 << 20};
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

    TRY(attempt, "open files", setrlimit(RLIMIT_NOFILE, &many), EPERM);
    TRY(attempt, "locked memory", setrlimit(RLIMIT_MEMLOCK, &all), EPERM);
    TRY(attempt, "message queues", setrlimit(RLIMIT_MSGQUEUE, &all), EPERM);
    TRY(attempt, "never out of memory", write(fd, "-1000", 5), EACCES);
}

const struct attack attack_raised_limits = {
    .name = "raised-limits",
    .tries = "raising one's own limits",
    .group = ATTACK_KERNEL,
    .inside = inside,
};
