#include "wire/landlock.h"

#include <linux/landlock.h>
#include <sys/syscall.h>
#include <unistd.h>

int landlock_version(void)
{
    long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

    return version < 0 ? -errno : (int)version;
}

int landlock_new(const struct landlock_rules *rules)
{
    /* Kernels take a longer struct than they know when the rest of it is zero. */
    long fd = syscall(SYS_landlock_create_ruleset, rules, sizeof *rules, 0);

    return fd < 0 ? -errno : (int)fd;
}

int landlock_enter(int fd)
{
    return syscall(SYS_landlock_restrict_self, fd, 0) < 0 ? -errno : 0;
}
