/*
 * x32-calls: the 32-bit flavour of the native calls, with a bit set in their numbers that a careless filter takes for
 * another call (CVE-2014-0038).
 */
#include "attack/attack.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    enum { X32_BIT = 0x40000000 };

    TRY(attempt, "getpid", syscall(X32_BIT | SYS_getpid), ENOSYS);
}

const struct attack attack_x32_calls = {
    .name = "x32-calls",
    .tries = "a system call of the x32 kind",
    .group = ATTACK_KERNEL,
    .inside = inside,
    .status = 128 + SIGSYS,
};
