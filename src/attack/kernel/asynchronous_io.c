/*
 * asynchronous-io: one counter for the whole machine (fs.aio-max-nr): who uses it up leaves none to databases.
 */
#include "attack/attack.h"

#include <sys/syscall.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    unsigned long context = 0;

    TRY(attempt, "io_setup", syscall(SYS_io_setup, 1, &context), EPERM, ENOSYS);
    TRY(attempt, "io_submit", syscall(SYS_io_submit, 0, 0, NULL), EPERM, ENOSYS);
}

const struct attack attack_asynchronous_io = {
    .name = "asynchronous-io",
    .tries = "using up the machine's asynchronous I/O",
    .group = ATTACK_KERNEL,
    .control = CONTROL_APART,
    .inside = inside,
};
