/*
 * network-changes: the links of the sandbox's own network: root inside has no power over it.
 */
#include "attack/attack.h"

#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

static void inside(struct attempt *attempt)
{
    struct ifreq request = {.ifr_name = "lo"};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    /* Outside it is down already. */
    TRY(attempt, "taking lo down", ioctl(fd, SIOCSIFFLAGS, &request), EPERM, ENOSYS, EBADF);
    request.ifr_mtu = 1500;
    TRY(attempt, "changing its MTU", ioctl(fd, SIOCSIFMTU, &request), EPERM, ENOSYS, EBADF);
}

const struct attack attack_network_changes = {
    .name = "network-changes",
    .tries = "taking loopback down, changing its MTU",
    .group = ATTACK_KERNEL,
    .control = CONTROL_APART,
    .inside = inside,
};
