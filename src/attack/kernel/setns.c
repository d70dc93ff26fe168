/*
 * setns: enters a namespace by a descriptor, of /proc or of a process.
 */
#include "attack/attack.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    static const char *const names[] = {"mnt", "net", "ipc", "uts", "cgroup"};
    int init = (int)syscall(SYS_pidfd_open, 1, 0);

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[64];
        (void)snprintf(path, sizeof path, "/proc/self/ns/%s", names[i]);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        TRY(attempt, path, syscall(SYS_setns, fd, 0), EPERM, ENOSYS);
        (void)close(fd);
    }
    TRY(attempt, "those of PID 1", syscall(SYS_setns, init, 0x20000), EPERM, ENOSYS);
}

const struct attack attack_setns = {
    .name = "setns",
    .tries = "entering another namespace",
    .group = ATTACK_KERNEL,
    .control = CONTROL_APART,
    .inside = inside,
};
