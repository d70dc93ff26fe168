/*
 * af-packet: frames as they come from the wire, with holes of its own (CVE-2017-7308, CVE-2020-14386).
 */
#include "attack/attack.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    TRY(attempt, "raw", socket(AF_PACKET, SOCK_RAW, 0), EPERM, ENOSYS);
    TRY(attempt, "datagram", socket(AF_PACKET, SOCK_DGRAM, 0), EPERM, ENOSYS);
    TRY(attempt, "with a high bit set", syscall(SYS_socket, AF_PACKET | 1UL << 40, SOCK_RAW, 0), EPERM, ENOSYS);
}

const struct attack attack_af_packet = {
    .name = "af-packet",
    .tries = "a socket to the wire itself",
    .group = ATTACK_KERNEL,
    .control = CONTROL_APART,
    .inside = inside,
};
