/*
 * memory-pipes: what is written to a pipe and not read lies in the kernel.
 */
#include "attack/attack.h"
#include "attack/work.h"

#include <fcntl.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    unsigned count = 0;
    int ends[2];

    while (count < 2000 && pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0) {
        (void)fcntl(ends[1], F_SETPIPE_SZ, 1 << 20);
        work_fill_descriptor(ends[1]);
        count++;
    }
    attempt_say(attempt, "pipes", count < 2000, "%u", count);
}

const struct attack attack_memory_pipes = {
    .name = "memory-pipes",
    .tries = "memory in the buffers of pipes",
    .group = ATTACK_RESOURCES,
    .variants = AS_NOBODY,
    .inside = inside,
    .options = {"--memory", "64M"},
    .may_be_killed = true,
    .memory_most = 66 << 20,
};
