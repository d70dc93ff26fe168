/*
 * core-pattern: a pipe in core_pattern is a program that the host's root runs when anything crashes: the shortest way
 * out. It is opened, not written.
 */
#include "attack/attack.h"

#include <fcntl.h>

static void inside(struct attempt *attempt)
{
    TRY(attempt, "core_pattern", open("/proc/sys/kernel/core_pattern", O_WRONLY | O_CLOEXEC), EROFS, EACCES, EPERM);
    TRY(attempt, "modprobe", open("/proc/sys/kernel/modprobe", O_WRONLY | O_CLOEXEC), EROFS, EACCES, EPERM, ENOENT);
    TRY(attempt, "uevent_helper", open("/sys/kernel/uevent_helper", O_WRONLY | O_CLOEXEC), ENOENT);
}

const struct attack attack_core_pattern = {
    .name = "core-pattern",
    .tries = "a program for the host to run on a crash",
    .group = ATTACK_FILES,
    .control = CONTROL_APART,
    .inside = inside,
};
