/*
 * swapped-workspace: the same with /workspace, which is writable: the host's folder would be.
 */
#include "attack/attack.h"
#include "attack/ground.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

static int prepare(const struct ground *ground)
{
    return ground_prepare_swap(ground, "workspace");
}

static void meanwhile(const struct ground *ground)
{
    ground_swap(ground, "workspace");
}

static void inside(struct attempt *attempt)
{
    TRY(attempt, "the host's file through it", open("/workspace/secret", O_RDWR | O_CLOEXEC), ENOENT);
    attempt_say(attempt, "writing to it", mkdir("/workspace/made", 0755) == 0, "it is not the sandbox's own");
}

const struct attack attack_swapped_workspace = {
    .name = "swapped-workspace",
    .tries = "/workspace of a template, exchanged while it is mounted",
    .group = ATTACK_FILES,
    .variants = AS_NOBODY,
    .inside = inside,
    .prepare = prepare,
    .meanwhile = meanwhile,
    .rounds = 25,
    .may_not_start = true,
};
