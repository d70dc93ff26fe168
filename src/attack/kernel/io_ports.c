/*
 * io-ports: direct access to hardware, and segments of one's own: old doors that nothing needs.
 */
#include "attack/attack.h"

#include <sys/syscall.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    TRY(attempt, "iopl", syscall(SYS_iopl, 3), EPERM, ENOSYS);
    TRY(attempt, "ioperm", syscall(SYS_ioperm, 0x80, 1, 1), EPERM, ENOSYS);
    TRY(attempt, "modify_ldt", syscall(SYS_modify_ldt, 0, NULL, 0), EPERM, ENOSYS);
}

const struct attack attack_io_ports = {
    .name = "io-ports",
    .tries = "I/O ports and segments of one's own",
    .group = ATTACK_KERNEL,
    .control = CONTROL_APART,
    .inside = inside,
};
