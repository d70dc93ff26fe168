/*
 * memory-memfd: files without a name, in no folder and on no disk.
 */
#include "attack/attack.h"
#include "attack/work.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    char path[64];
    uint64_t size = 0;

    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", memfd_create("large", 0));
    (void)work_fill_file(path, 1UL << 30, &size);
    attempt_say(attempt, "1 GiB", false, "%llu bytes are there", (unsigned long long)size);
}

const struct attack attack_memory_memfd = {
    .name = "memory-memfd",
    .tries = "1 GiB in files without a name",
    .group = ATTACK_RESOURCES,
    .variants = AS_NOBODY,
    .inside = inside,
    .options = {"--memory", "64M"},
    .status = 128 + SIGKILL,
    .limit = "memory",
    .memory_most = 66 << 20,
};
