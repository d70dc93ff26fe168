/*
 * swapped-proc: the same with /proc, on which what protects a sandbox from its own kernel settings depends.
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
    return ground_prepare_swap(ground, "proc");
}

static void meanwhile(const struct ground *ground)
{
    ground_swap(ground, "proc");
}

static void inside(struct attempt *attempt)
{
    struct statfs st = {0};

    attempt_say(attempt, "/proc", statfs("/proc", &st) == 0 && st.f_type == PROC_SUPER_MAGIC, "it is something else");
    attempt_say(attempt, "the host's file through it", access("/proc/secret", F_OK) != 0, "it is there");
}

const struct attack attack_swapped_proc = {
    .name = "swapped-proc",
    .tries = "/proc of a template, exchanged while it is mounted",
    .group = ATTACK_FILES,
    .variants = AS_NOBODY,
    .inside = inside,
    .prepare = prepare,
    .meanwhile = meanwhile,
    .rounds = 25,
    .may_not_start = true,
};
