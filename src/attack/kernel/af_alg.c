/*
 * af-alg: the kernel's cryptography for everybody, which loads modules on demand.
 */
#include "attack/attack.h"

#include <sys/socket.h>

static void inside(struct attempt *attempt)
{
    TRY(attempt, "AF_ALG", socket(38, SOCK_SEQPACKET, 0), EPERM, ENOSYS);
}

const struct attack attack_af_alg = {
    .name = "af-alg",
    .tries = "a socket to the kernel's cryptography",
    .group = ATTACK_KERNEL,
    .inside = inside,
};
