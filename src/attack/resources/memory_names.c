/*
 * memory-names: names that do not exist are remembered by the kernel.
 */
#include "attack/attack.h"
#include "attack/work.h"

#include <stdio.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    uint64_t deadline_ns = work_deadline_ns(700);
    unsigned long count = 0;

    for (; work_goes_on(deadline_ns); count++) {
        char path[256];
        (void)snprintf(path, sizeof path, "/tmp/%0200lu", count);
        ignore_result(access(path, F_OK));
    }
    attempt_say(attempt, "names", true, "%lu", count);
}

const struct attack attack_memory_names = {
    .name = "memory-names",
    .tries = "memory in names that do not exist",
    .group = ATTACK_RESOURCES,
    .variants = AS_NOBODY,
    .inside = inside,
    .options = {"--memory", "64M"},
    .may_be_killed = true,
    .memory_most = 66 << 20,
};
