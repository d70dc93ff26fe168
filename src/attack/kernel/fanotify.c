/*
 * fanotify: watches, and with permission events delays, every file access of a whole file system.
 */
#include "attack/attack.h"

#include <sys/syscall.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    TRY(attempt, "fanotify_init", syscall(SYS_fanotify_init, 0, 0), EPERM, ENOSYS);
    TRY(attempt, "with permission events", syscall(SYS_fanotify_init, 4, 0), EPERM, ENOSYS);
}

const struct attack attack_fanotify = {
    .name = "fanotify",
    .tries = "watching every access to a file system",
    .group = ATTACK_KERNEL,
    .control = CONTROL_APART,
    .inside = inside,
};
