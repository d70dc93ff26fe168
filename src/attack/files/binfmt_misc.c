/*
 * binfmt-misc: an interpreter for a kind of program is run for the whole machine, with the rights of whoever starts
 * one.
 */
#include "attack/attack.h"

#include <fcntl.h>

static void inside(struct attempt *attempt)
{
    TRY(attempt, "register", open("/proc/sys/fs/binfmt_misc/register", O_WRONLY | O_CLOEXEC), ENOENT, EROFS, EACCES);
}

const struct attack attack_binfmt_misc = {
    .name = "binfmt-misc",
    .tries = "an interpreter for the host's programs",
    .group = ATTACK_FILES,
    .control = CONTROL_BESIDE,
    .inside = inside,
};
