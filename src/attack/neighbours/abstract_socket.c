/*
 * abstract-socket: abstract names belong to the network namespace: one shared with the host reaches its desktop and
 * its daemons (CVE-2020-15257).
 */
#include "attack/attack.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

static void inside(struct attempt *attempt)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    size_t length = strlen(attempt_canary("NAME"));

    (void)snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "%s", attempt_canary("NAME"));
    TRY(attempt, "connect",
        connect(fd, (struct sockaddr *)&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length)),
        ECONNREFUSED, ENOSYS);
}

const struct attack attack_abstract_socket = {
    .name = "abstract-socket",
    .tries = "abstract sockets of the host and the neighbour",
    .group = ATTACK_NEIGHBOURS,
    .control = CONTROL_BESIDE,
    .inside = inside,
};
