/*
 * memory: the plain way: memory, touched until there is none.
 */
#include "attack/attack.h"
#include "attack/work.h"

#include <signal.h>

static void inside(struct attempt *attempt)
{
    work_touch_memory(1UL << 30);
    attempt_say(attempt, "1 GiB", false, "it is there");
}

const struct attack attack_memory = {
    .name = "memory",
    .tries = "1 GiB of memory with a limit of 64 MiB",
    .group = ATTACK_RESOURCES,
    .variants = AS_NOBODY | AS_ROOT,
    .inside = inside,
    .options = {"--memory", "64M"},
    .status = 128 + SIGKILL,
    .limit = "memory",
    .memory_most = 66 << 20,
};
