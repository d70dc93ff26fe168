/*
 * template-proc-symlink: a template whose /proc is a symlink to a folder of the host's: what is mounted there would be
 * mounted on the host (CVE-2026-47766).
 */
#include "attack/attack.h"
#include "attack/ground.h"

static int prepare(const struct ground *ground)
{
    return ground_replace_with_symlink(ground, "proc", ground->canary);
}

const struct attack attack_template_proc_symlink = {
    .name = "template-proc-symlink",
    .tries = "a template whose /proc leads to the host",
    .group = ATTACK_FILES,
    .prepare = prepare,
    .status = 125,
    .says = "step",
};
