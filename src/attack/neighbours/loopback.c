/*
 * loopback: 127.0.0.1 is where databases and daemons without a password listen.
 */
#include "attack/attack.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

static void inside(struct attempt *attempt)
{
    static const char *const addresses[] = {"127.0.0.1", "0.0.0.0"};

    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
        struct sockaddr_in address = {.sin_family = AF_INET,
                                      .sin_port = htons((uint16_t)attempt_canary_number("PORT"))};
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        (void)inet_pton(AF_INET, addresses[i], &address.sin_addr);
        TRY(attempt, addresses[i], connect(fd, (struct sockaddr *)&address, sizeof address), ECONNREFUSED, ENOSYS);
    }
}

const struct attack attack_loopback = {
    .name = "loopback",
    .tries = "services of the host and the neighbour on loopback",
    .group = ATTACK_NEIGHBOURS,
    .control = CONTROL_BESIDE,
    .inside = inside,
};
