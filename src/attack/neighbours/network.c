/*
 * network: there is no way to any other machine: no route, no interface but loopback.
 */
#include "attack/attack.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

static void inside(struct attempt *attempt)
{
    static const char *const addresses[] = {"10.0.0.1", "169.254.169.254", "192.168.0.1", "100.100.100.200",
                                            "224.0.0.1"};

    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(80)};
        int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        (void)inet_pton(AF_INET, addresses[i], &address.sin_addr);
        TRY(attempt, addresses[i], connect(fd, (struct sockaddr *)&address, sizeof address), ENETUNREACH, ENOSYS);
    }
    attempt_say(attempt, "another interface", if_nametoindex("eth0") == 0 && if_nametoindex("docker0") == 0,
                "there is one");
}

const struct attack attack_network = {
    .name = "network",
    .tries = "any address beyond loopback",
    .group = ATTACK_NEIGHBOURS,
    .inside = inside,
};
