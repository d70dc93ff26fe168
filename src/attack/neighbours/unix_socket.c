/*
 * unix-socket: a socket in the neighbour's /run, by its name.
 */
#include "attack/attack.h"

#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

static void inside(struct attempt *attempt)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)snprintf(address.sun_path, sizeof address.sun_path, "/run/%.80s", attempt_canary("NAME"));
    TRY(attempt, "connect", connect(fd, (struct sockaddr *)&address, sizeof address), ENOENT, ENOSYS);
}

const struct attack attack_unix_socket = {
    .name = "unix-socket",
    .tries = "a socket file of the neighbour's",
    .group = ATTACK_NEIGHBOURS,
    .inside = inside,
};
