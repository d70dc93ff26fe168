/*
 * host-name: the name of the machine, or of the sandbox.
 */
#include "attack/attack.h"

#include <sys/syscall.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    TRY(attempt, "sethostname", syscall(SYS_sethostname, "attacked", 8), EPERM, ENOSYS);
    TRY(attempt, "setdomainname", syscall(SYS_setdomainname, "attacked", 8), EPERM, ENOSYS);
}

const struct attack attack_host_name = {
    .name = "host-name",
    .tries = "changing host and domain name",
    .group = ATTACK_KERNEL,
    .control = CONTROL_APART,
    .inside = inside,
};
