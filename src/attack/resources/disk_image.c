/*
 * disk-image: the same on a disk that lies in a file of the host's.
 */
#include "attack/attack.h"
#include "attack/work.h"

static void inside(struct attempt *attempt)
{
    uint64_t size = 0;
    int error = work_fill_file("/workspace/large", UINT64_MAX, &size);

    attempt_say(attempt, "one file", error == ENOSPC && size <= 32 << 20, "%d after %llu bytes", error,
                (unsigned long long)size);
}

const struct attack attack_disk_image = {
    .name = "disk-image",
    .tries = "more than a disk image holds",
    .group = ATTACK_RESOURCES,
    .variants = AS_NOBODY,
    .inside = inside,
    .options = {"--memory", "48M", "--disk", "32M"},
};
