/*
 * memory-in-files: files in memory are memory: /tmp up to the size of the disk, and not one byte more.
 */
#include "attack/attack.h"
#include "attack/work.h"

static void inside(struct attempt *attempt)
{
    static const char *const paths[] = {"/tmp/large", "/dev/shm/large", "/run/large", "/workspace/large"};
    uint64_t total = 0;

    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        uint64_t size = 0;
        int error = work_fill_file(paths[i], UINT64_MAX, &size);
        total += size;
        attempt_say(attempt, paths[i], error == ENOSPC, "it ended with %d after %llu bytes", error,
                    (unsigned long long)size);
    }
    attempt_say(attempt, "all together", total <= 32 << 20, "%llu bytes", (unsigned long long)total);
}

const struct attack attack_memory_in_files = {
    .name = "memory-in-files",
    .tries = "memory by files in /tmp, /run and /dev/shm",
    .group = ATTACK_RESOURCES,
    .variants = AS_NOBODY | AS_ROOT,
    .inside = inside,
    .options = {"--memory", "64M", "--disk", "32M"},
    .memory_most = 66 << 20,
};
