/*
 * disk-one-file: one file, as large as it gets.
 */
#include "attack/attack.h"
#include "attack/work.h"

static void inside(struct attempt *attempt)
{
    uint64_t size = 0;
    int error = work_fill_file("/workspace/large", UINT64_MAX, &size);

    attempt_say(attempt, "one file", error == ENOSPC && size <= 16 << 20, "%d after %llu bytes", error,
                (unsigned long long)size);
}

const struct attack attack_disk_one_file = {
    .name = "disk-one-file",
    .tries = "a file larger than the disk",
    .group = ATTACK_RESOURCES,
    .variants = AS_NOBODY | AS_ROOT,
    .inside = inside,
    .options = {"--disk", "16M"},
};
