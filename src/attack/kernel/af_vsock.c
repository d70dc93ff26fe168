/*
 * af-vsock: sockets to the hypervisor and other virtual machines: no network namespace holds them (CVE-2021-26708).
 */
#include "attack/attack.h"

#include <sys/socket.h>

static void inside(struct attempt *attempt)
{
    TRY(attempt, "stream", socket(40, SOCK_STREAM, 0), EPERM, ENOSYS);
    TRY(attempt, "datagram", socket(40, SOCK_DGRAM, 0), EPERM, ENOSYS);
}

const struct attack attack_af_vsock = {
    .name = "af-vsock",
    .tries = "a socket to the hypervisor",
    .group = ATTACK_KERNEL,
    .inside = inside,
};
