/*
 * memory-shared: System V shared memory stays when its processes are gone.
 */
#include "attack/attack.h"
#include "attack/work.h"

#include <signal.h>
#include <stdint.h>
#include <sys/ipc.h>
#include <sys/shm.h>

static void inside(struct attempt *attempt)
{
    for (int i = 0; i < 64; i++) {
        int id = shmget(IPC_PRIVATE, 16 << 20, IPC_CREAT | 0600);
        char *memory = shmat(id, NULL, 0);
        for (size_t at = 0; (intptr_t)memory != -1 && at < 16 << 20; at += 4096)
            memory[at] = 'x';
    }
    attempt_say(attempt, "1 GiB", false, "it is there");
}

const struct attack attack_memory_shared = {
    .name = "memory-shared",
    .tries = "1 GiB of System V shared memory",
    .group = ATTACK_RESOURCES,
    .variants = AS_NOBODY,
    .inside = inside,
    .options = {"--memory", "64M"},
    .status = 128 + SIGKILL,
    .limit = "memory",
    .memory_most = 66 << 20,
};
