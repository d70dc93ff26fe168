/*
 * memory-tcp: TCP has buffers on both ends and a limit of its own.
 */
#include "attack/attack.h"
#include "attack/work.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

static void inside(struct attempt *attempt)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    unsigned count = 0;

    if (bind(listener, (struct sockaddr *)&address, length) < 0 || listen(listener, 128) < 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) < 0) {
        attempt_say(attempt, "connections", false, "none could be made");
        return;
    }
    for (; count < 300; count++) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0 || accept(listener, NULL, NULL) < 0)
            break;
        work_fill_descriptor(fd);
    }
    /* Where TCP has a limit of its own beside the memory limit, connections wait for it instead. */
    attempt_say(attempt, "connections", true, "%u", count);
}

const struct attack attack_memory_tcp = {
    .name = "memory-tcp",
    .tries = "memory in the buffers of TCP",
    .group = ATTACK_RESOURCES,
    .variants = AS_NOBODY,
    .inside = inside,
    .options = {"--memory", "64M"},
    .may_be_killed = true,
    .memory_most = 66 << 20,
};
