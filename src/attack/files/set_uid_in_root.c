/*
 * set-uid-in-root: the same in a writable root, whose changes lie in an upper layer.
 */
#include "attack/attack.h"
#include "attack/ground.h"
#include "attack/rights.h"

#include <sys/stat.h>

static int prepare(const struct ground *ground)
{
    (void)ground;
    return 0;
}

static void inside(struct attempt *attempt)
{
    bool made = rights_copy_program("/attack/set-uid") == 0 && chmod("/attack/set-uid", 06755) == 0;

    if (made)
        attempt_say(attempt, "running it", !rights_are_gained("/attack/set-uid"), "it has more rights, or did not run");
    else
        attempt_say(attempt, "making it", errno == EPERM, "%d", errno);
}

const struct attack attack_set_uid_in_root = {
    .name = "set-uid-in-root",
    .tries = "a set-user-ID program in a writable root",
    .group = ATTACK_FILES,
    .variants = AS_ROOT,
    .inside = inside,
    .options = {"--rw-root"},
    .prepare = prepare,
};
