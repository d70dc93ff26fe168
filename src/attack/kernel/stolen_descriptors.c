/*
 * stolen-descriptors: pidfd_getfd takes an open descriptor out of another process: PID 1 has one of its cgroup and one
 * to the keeper's client.
 */
#include "attack/attack.h"

#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    int own = (int)syscall(SYS_pidfd_open, getpid(), 0);
    int init = (int)syscall(SYS_pidfd_open, 1, 0);

    TRY(attempt, "one's own", syscall(SYS_pidfd_getfd, own, 1, 0), EPERM, ENOSYS);
    for (int fd = 0; fd < 12; fd++) {
        char what[32];
        (void)snprintf(what, sizeof what, "PID 1's %d", fd);
        TRY(attempt, what, syscall(SYS_pidfd_getfd, init, fd, 0), EPERM, ENOSYS);
    }
}

const struct attack attack_stolen_descriptors = {
    .name = "stolen-descriptors",
    .tries = "taking open files out of PID 1",
    .group = ATTACK_KERNEL,
    .control = CONTROL_APART,
    .inside = inside,
};
