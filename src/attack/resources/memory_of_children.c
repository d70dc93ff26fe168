/*
 * memory-of-children: memory of many small processes instead of one large.
 */
#include "attack/attack.h"
#include "attack/work.h"

#include <signal.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    for (int i = 0; i < 16; i++) {
        if (fork() == 0) {
            work_touch_memory(64UL << 20);
            (void)pause();
        }
    }
    (void)sleep(20);
    attempt_say(attempt, "1 GiB", false, "it is there");
}

const struct attack attack_memory_of_children = {
    .name = "memory-of-children",
    .tries = "1 GiB in sixteen processes",
    .group = ATTACK_RESOURCES,
    .variants = AS_NOBODY,
    .inside = inside,
    .options = {"--memory", "64M"},
    .status = 128 + SIGKILL,
    .limit = "memory",
    .memory_most = 66 << 20,
};
