/*
 * netlink: the kernel's own protocols: audit, netfilter, IPsec, SELinux, device events; only routes may be asked for.
 */
#include "attack/attack.h"

#include <stdio.h>
#include <sys/socket.h>

static void inside(struct attempt *attempt)
{
    for (int protocol = 1; protocol < 24; protocol++) {
        char what[32];
        (void)snprintf(what, sizeof what, "protocol %d", protocol);
        TRY(attempt, what, socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol), EPERM, ENOSYS);
    }
}

const struct attack attack_netlink = {
    .name = "netlink",
    .tries = "netlink beyond routes",
    .group = ATTACK_KERNEL,
    .inside = inside,
};
