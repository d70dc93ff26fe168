/*
 * template-console-symlink: the terminal is mounted on /dev/console; a template's own that is a symlink had it mounted
 * elsewhere (CVE-2025-52565).
 */
#include "attack/attack.h"
#include "attack/ground.h"

#include <fcntl.h>

static int prepare(const struct ground *ground)
{
    return ground_replace_with_symlink(ground, "dev/console", ground->canary) < 0
               ? -EIO
               : ground_replace_with_symlink(ground, "dev/pts", ground->canary);
}

static void inside(struct attempt *attempt)
{
    TRY(attempt, "/dev/console", open("/dev/console/secret", O_RDONLY | O_CLOEXEC), ENOENT, ENOTDIR, EACCES, ENXIO);
    TRY(attempt, "/dev/pts", open("/dev/pts/secret", O_RDONLY | O_CLOEXEC), ENOENT);
}

const struct attack attack_template_console_symlink = {
    .name = "template-console-symlink",
    .tries = "a template whose /dev/console and /dev/pts lead to the host",
    .group = ATTACK_FILES,
    .inside = inside,
    .prepare = prepare,
};
