/*
 * set-uid-in-template: a template may come from anywhere, with a set-user-ID program of root's in it.
 */
#include "attack/attack.h"
#include "attack/ground.h"
#include "attack/rights.h"

static int prepare(const struct ground *ground)
{
    return ground_copy_program(ground, "attack/set-uid", 06755);
}

static void inside(struct attempt *attempt)
{
    attempt_say(attempt, "running it", !rights_are_gained("/attack/set-uid"), "it has more rights, or did not run");
}

const struct attack attack_set_uid_in_template = {
    .name = "set-uid-in-template",
    .tries = "a set-user-ID program in a template",
    .group = ATTACK_FILES,
    .variants = AS_NOBODY | WITH_TIGHT,
    .inside = inside,
    .prepare = prepare,
};
