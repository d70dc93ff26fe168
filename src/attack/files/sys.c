/*
 * sys: /sys has knobs for every device and for the kernel itself; a sandbox has none.
 */
#include "attack/attack.h"

#include <fcntl.h>

static void inside(struct attempt *attempt)
{
    static const char *const paths[] = {"/sys/kernel",   "/sys/fs/cgroup",    "/sys/power/state", "/sys/module",
                                        "/sys/firmware", "/sys/kernel/debug", "/sys/class/net",   "/sys/devices"};

    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        TRY(attempt, paths[i], open(paths[i], O_RDONLY | O_CLOEXEC), ENOENT);
}

const struct attack attack_sys = {
    .name = "sys",
    .tries = "anything in /sys",
    .group = ATTACK_FILES,
    .control = CONTROL_APART,
    .inside = inside,
};
