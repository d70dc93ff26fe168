/*
 * memory-page-tables: one page read in each two MiB: all the memory this takes is in page tables.
 */
#include "attack/attack.h"
#include "attack/work.h"

#include <sys/mman.h>

static void inside(struct attempt *attempt)
{
    enum { STEP = 2 << 20 };
    size_t size = 64UL << 30;
    char *memory = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    unsigned long sum = 0;

    if (memory == MAP_FAILED) {
        attempt_say(attempt, "64 GiB of addresses", errno == ENOMEM, "%d", errno);
        return;
    }
    (void)madvise(memory, size, MADV_NOHUGEPAGE);
    for (size_t at = 0; at < size; at += STEP)
        sum += (unsigned char)((volatile char *)memory)[at];
    attempt_say(attempt, "64 GiB of addresses", false, "128 MiB of tables are there (%lu)", sum);
}

const struct attack attack_memory_page_tables = {
    .name = "memory-page-tables",
    .tries = "memory in page tables",
    .group = ATTACK_RESOURCES,
    .variants = AS_NOBODY,
    .inside = inside,
    .options = {"--memory", "64M"},
    .may_be_killed = true,
    .memory_most = 66 << 20,
};
