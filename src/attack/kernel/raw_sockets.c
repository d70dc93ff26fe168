/*
 * raw-sockets: packets of one's own making: root in a sandbox is not root of its network namespace.
 */
#include "attack/attack.h"

#include <netinet/in.h>
#include <sys/socket.h>

static void inside(struct attempt *attempt)
{
    TRY(attempt, "ICMP", socket(AF_INET, SOCK_RAW, IPPROTO_ICMP), EPERM, ENOSYS);
    TRY(attempt, "TCP", socket(AF_INET, SOCK_RAW, IPPROTO_TCP), EPERM, ENOSYS);
    TRY(attempt, "raw", socket(AF_INET, SOCK_RAW, IPPROTO_RAW), EPERM, ENOSYS);
    TRY(attempt, "ICMPv6", socket(AF_INET6, SOCK_RAW, IPPROTO_ICMPV6), EPERM, ENOSYS);
}

const struct attack attack_raw_sockets = {
    .name = "raw-sockets",
    .tries = "raw sockets",
    .group = ATTACK_KERNEL,
    .control = CONTROL_APART,
    .inside = inside,
};
