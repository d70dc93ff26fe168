/*
 * swapped-dev: a mount target that becomes a symlink between the check and the mount (CVE-2021-30465): /dev of a
 * template, exchanged all the time.
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
    return ground_prepare_swap(ground, "dev");
}

static void meanwhile(const struct ground *ground)
{
    ground_swap(ground, "dev");
}

static void inside(struct attempt *attempt)
{
    struct statfs st = {0};

    attempt_say(attempt, "/dev", statfs("/dev", &st) == 0 && st.f_type == TMPFS_MAGIC, "it is something else");
    attempt_say(attempt, "the host's file through it", access("/dev/secret", F_OK) != 0, "it is there");
}

const struct attack attack_swapped_dev = {
    .name = "swapped-dev",
    .tries = "/dev of a template, exchanged while it is mounted",
    .group = ATTACK_FILES,
    .variants = AS_NOBODY,
    .inside = inside,
    .prepare = prepare,
    .meanwhile = meanwhile,
    .rounds = 25,
    .may_not_start = true,
};
