/*
 * set-uid-files: a file that gives its owner's rights to whoever runs it, made by root of the sandbox: every mount is
 * nosuid.
 */
#include "attack/attack.h"
#include "attack/rights.h"

#include <sys/stat.h>

static void inside(struct attempt *attempt)
{
    bool made = rights_copy_program("/tmp/set-uid") == 0 && chmod("/tmp/set-uid", 06755) == 0;

    if (made)
        attempt_say(attempt, "running it", !rights_are_gained("/tmp/set-uid"), "it has more rights, or did not run");
    else
        attempt_say(attempt, "making it", errno == EPERM, "%d", errno);
}

const struct attack attack_set_uid_files = {
    .name = "set-uid-files",
    .tries = "a set-user-ID program made inside",
    .group = ATTACK_FILES,
    .variants = AS_ROOT,
    .inside = inside,
};
