/*
 * shared-memory: System V segments are found by a number that everybody can guess.
 */
#include "attack/attack.h"

#include <stdint.h>
#include <sys/ipc.h>
#include <sys/shm.h>

static void inside(struct attempt *attempt)
{
    key_t key = (key_t)attempt_canary_number("KEY");

    TRY(attempt, "by key", shmget(key, 0, 0), ENOENT, ENOSYS);
    TRY(attempt, "by number", (intptr_t)shmat(shmget(key, 0, 0), NULL, SHM_RDONLY), EINVAL, EIDRM, EACCES, ENOSYS);
}

const struct attack attack_shared_memory = {
    .name = "shared-memory",
    .tries = "System V shared memory of host and neighbour",
    .group = ATTACK_NEIGHBOURS,
    .control = CONTROL_BESIDE,
    .inside = inside,
};
