/*
 * userfaultfd: stops the kernel in the middle of copying from user memory for as long as one likes: what makes a race
 * in it a sure thing.
 */
#include "attack/attack.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    TRY(attempt, "userfaultfd", syscall(SYS_userfaultfd, O_CLOEXEC), EPERM, ENOSYS);
    TRY(attempt, "userfaultfd for user mode", syscall(SYS_userfaultfd, O_CLOEXEC | 1), EPERM, ENOSYS);
}

const struct attack attack_userfaultfd = {
    .name = "userfaultfd",
    .tries = "stopping the kernel in the middle of a copy",
    .group = ATTACK_KERNEL,
    .control = CONTROL_APART,
    .inside = inside,
};
