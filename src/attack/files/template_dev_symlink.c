/*
 * template-dev-symlink: a template whose /dev is a symlink to a folder of the host's: what is mounted there would be
 * mounted on the host (CVE-2026-47766).
 */
#include "attack/attack.h"
#include "attack/ground.h"

static int prepare(const struct ground *ground)
{
    return ground_replace_with_symlink(ground, "dev", ground->canary);
}

const struct attack attack_template_dev_symlink = {
    .name = "template-dev-symlink",
    .tries = "a template whose /dev leads to the host",
    .group = ATTACK_FILES,
    .prepare = prepare,
    .status = 125,
    .says = "step",
};
