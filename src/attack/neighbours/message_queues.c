/*
 * message-queues: System V queues and semaphores, found by number as well.
 */
#include "attack/attack.h"

#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>

static void inside(struct attempt *attempt)
{
    key_t key = (key_t)attempt_canary_number("KEY");
    struct {
        long type;
        char text[64];
    } message = {0};

    TRY(attempt, "its queue", msgget(key, 0), ENOENT, ENOSYS);
    for (int id = 0; id < 4; id++) {
        static const char *const what[] = {"queue 0", "queue 1", "queue 2", "queue 3"};
        TRY(attempt, what[id], msgrcv(id, &message, sizeof message.text, 0, IPC_NOWAIT), EINVAL, EIDRM, EACCES, ENOSYS);
    }
    TRY(attempt, "its semaphores", semget(key, 0, 0), ENOENT, ENOSYS);
}

const struct attack attack_message_queues = {
    .name = "message-queues",
    .tries = "System V queues and semaphores of the neighbour",
    .group = ATTACK_NEIGHBOURS,
    .inside = inside,
};
