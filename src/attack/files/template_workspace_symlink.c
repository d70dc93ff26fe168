/*
 * template-workspace-symlink: a template whose /workspace is a symlink to a folder of the host's: the sandbox's files
 * would be the host's.
 */
#include "attack/attack.h"
#include "attack/ground.h"

static int prepare(const struct ground *ground)
{
    return ground_replace_with_symlink(ground, "workspace", ground->canary);
}

const struct attack attack_template_workspace_symlink = {
    .name = "template-workspace-symlink",
    .tries = "a template whose /workspace leads to the host",
    .group = ATTACK_FILES,
    .prepare = prepare,
    .status = 125,
    .says = "step",
};
