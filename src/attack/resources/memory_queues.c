/*
 * memory-queues: messages that nobody takes, System V's and POSIX's.
 */
#include "attack/attack.h"

#include <fcntl.h>
#include <mqueue.h>
#include <stdio.h>
#include <sys/ipc.h>
#include <sys/msg.h>

static void inside(struct attempt *attempt)
{
    static struct {
        long type;
        char text[8192];
    } message = {1, {0}};
    unsigned long bytes = 0;
    unsigned queues = 0;

    for (int i = 0; i < 16000; i++) {
        int id = msgget(IPC_PRIVATE, IPC_CREAT | 0600);
        while (id >= 0 && msgsnd(id, &message, sizeof message.text, IPC_NOWAIT) == 0)
            bytes += sizeof message.text;
        if (id < 0)
            break;
    }
    for (; queues < 1000; queues++) {
        char name[32];
        (void)snprintf(name, sizeof name, "/queue-%u", queues);
        if (mq_open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600, NULL) == (mqd_t)-1)
            break;
    }
    attempt_say(attempt, "messages", bytes < 128 << 20, "%lu bytes", bytes);
    attempt_say(attempt, "POSIX queues", queues < 1000, "%u", queues);
}

const struct attack attack_memory_queues = {
    .name = "memory-queues",
    .tries = "memory in message queues",
    .group = ATTACK_RESOURCES,
    .variants = AS_NOBODY,
    .inside = inside,
    .options = {"--memory", "64M"},
    .may_be_killed = true,
    .memory_most = 66 << 20,
};
