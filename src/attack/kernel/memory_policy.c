/*
 * memory-policy: moves another's memory between nodes and locks one's own for ever.
 */
#include "attack/attack.h"

#include <sys/syscall.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    unsigned long nodes = 1;

    TRY(attempt, "migrate_pages", syscall(SYS_migrate_pages, 1, 8, &nodes, &nodes), EPERM, ENOSYS);
    TRY(attempt, "move_pages of PID 1", syscall(SYS_move_pages, 1, 0, NULL, NULL, NULL, 0), EPERM, ENOSYS);
}

const struct attack attack_memory_policy = {
    .name = "memory-policy",
    .tries = "moving pages of other processes",
    .group = ATTACK_KERNEL,
    .control = CONTROL_APART,
    .inside = inside,
};
