/*
 * sysrq-trigger: one letter in /proc/sysrq-trigger reboots or crashes the machine. It is opened, not written.
 */
#include "attack/attack.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    struct stat st = {0};
    int fd = open("/proc/sysrq-trigger", O_WRONLY | O_CLOEXEC);
    bool is_null = fd >= 0 && fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3);

    attempt_say(attempt, "/proc/sysrq-trigger", fd < 0 || is_null, "it can be written to");
    TRY(attempt, "kernel.sysrq", open("/proc/sys/kernel/sysrq", O_WRONLY | O_CLOEXEC), EROFS, EACCES, EPERM, ENOENT);
}

const struct attack attack_sysrq_trigger = {
    .name = "sysrq-trigger",
    .tries = "the machine's emergency keys",
    .group = ATTACK_FILES,
    .control = CONTROL_APART,
    .inside = inside,
};
