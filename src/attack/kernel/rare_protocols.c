/*
 * rare-protocols: protocols of the internet families beside TCP, UDP and ICMP: SCTP, DCCP, L2TP, MPTCP, UDP-Lite, each
 * a module.
 */
#include "attack/attack.h"

#include <netinet/in.h>
#include <sys/socket.h>

static void inside(struct attempt *attempt)
{
    static const struct {
        const char *name;
        int type;
        int protocol;
    } protocols[] = {
        {"SCTP", SOCK_STREAM, 132},    {"DCCP", 6, 33}, {"L2TP", SOCK_DGRAM, 115}, {"MPTCP", SOCK_STREAM, 262},
        {"UDP-Lite", SOCK_DGRAM, 136},
    };

    for (size_t i = 0; i < sizeof protocols / sizeof *protocols; i++)
        TRY(attempt, protocols[i].name, socket(AF_INET, protocols[i].type, protocols[i].protocol), EPERM, ENOSYS);
}

const struct attack attack_rare_protocols = {
    .name = "rare-protocols",
    .tries = "SCTP, DCCP, L2TP, MPTCP, UDP-Lite",
    .group = ATTACK_KERNEL,
    .inside = inside,
};
