/*
 * disk-many-files: many small files: each takes a page, and an inode.
 */
#include "attack/attack.h"
#include "attack/work.h"

#include <stdio.h>

static void inside(struct attempt *attempt)
{
    uint64_t total = 0;
    int error = 0;

    for (unsigned i = 0; error == 0 && i < 1000000; i++) {
        char path[64];
        uint64_t size = 0;
        (void)snprintf(path, sizeof path, "/workspace/small-%u", i);
        error = work_fill_file(path, 5000, &size);
        total += size;
    }
    attempt_say(attempt, "many files", error == ENOSPC && total <= 16 << 20, "%d after %llu bytes", error,
                (unsigned long long)total);
}

const struct attack attack_disk_many_files = {
    .name = "disk-many-files",
    .tries = "files until the disk is full",
    .group = ATTACK_RESOURCES,
    .variants = AS_NOBODY,
    .inside = inside,
    .options = {"--disk", "16M"},
};
