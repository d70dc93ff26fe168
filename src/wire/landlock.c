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

int landlock_allow(int fd, uint64_t accesses, int path_fd)
{
    struct landlock_path_beneath_attr rule = {.allowed_access = accesses, .parent_fd = path_fd};

    return syscall(SYS_landlock_add_rule, fd, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0 ? -errno : 0;
}

int landlock_enter(int fd)
{
    return syscall(SYS_landlock_restrict_self, fd, 0) < 0 ? -errno : 0;
}
