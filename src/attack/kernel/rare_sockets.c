/*
 * rare-sockets: every other address family: rarely used, rarely looked at, and loaded as a module when somebody asks
 * (CVE-2017-6074, CVE-2019-8912).
 */
#include "attack/attack.h"

#include <stdio.h>
#include <sys/socket.h>

static void inside(struct attempt *attempt)
{
    for (int family = 0; family < 64; family++) {
        char what[32];
        if (family == AF_UNIX || family == AF_INET || family == AF_INET6 || family == AF_NETLINK)
            continue;
        (void)snprintf(what, sizeof what, "family %d", family);
        TRY(attempt, what, socket(family, SOCK_DGRAM, 0), EPERM, ENOSYS);
    }
}

const struct attack attack_rare_sockets = {
    .name = "rare-sockets",
    .tries = "sockets of every other address family",
    .group = ATTACK_KERNEL,
    .inside = inside,
};
