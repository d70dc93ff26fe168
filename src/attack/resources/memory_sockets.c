/*
 * memory-sockets: what is sent and not received lies in the kernel as well.
 */
#include "attack/attack.h"
#include "attack/work.h"

#include <sys/socket.h>

static void inside(struct attempt *attempt)
{
    unsigned count = 0;
    int size = 1 << 24;
    int ends[2];

    while (count < 2000 && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0) {
        (void)setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
        work_fill_descriptor(ends[0]);
        count++;
    }
    attempt_say(attempt, "socket pairs", count < 2000, "%u", count);
}

const struct attack attack_memory_sockets = {
    .name = "memory-sockets",
    .tries = "memory in the buffers of sockets",
    .group = ATTACK_RESOURCES,
    .variants = AS_NOBODY,
    .inside = inside,
    .options = {"--memory", "64M"},
    .may_be_killed = true,
    .memory_most = 66 << 20,
};
