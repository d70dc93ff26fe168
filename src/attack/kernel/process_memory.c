/*
 * process-memory: reads and writes memory of another process with one call.
 */
#include "attack/attack.h"

#include <linux/kcmp.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    char byte = 'x';
    struct iovec own = {&byte, 1};

    TRY(attempt, "process_vm_readv", syscall(SYS_process_vm_readv, getpid(), &own, 1, &own, 1, 0), EPERM, ENOSYS);
    TRY(attempt, "process_vm_writev", syscall(SYS_process_vm_writev, getpid(), &own, 1, &own, 1, 0), EPERM, ENOSYS);
    TRY(attempt, "kcmp", syscall(SYS_kcmp, getpid(), getpid(), KCMP_VM, 0, 0), EPERM, ENOSYS);
    TRY(attempt, "process_madvise", syscall(SYS_process_madvise, -1, &own, 1, 4, 0), EPERM, ENOSYS);
    TRY(attempt, "move_pages", syscall(SYS_move_pages, 0, 0, NULL, NULL, NULL, 0), EPERM, ENOSYS);
}

const struct attack attack_process_memory = {
    .name = "process-memory",
    .tries = "reading and writing another process's memory",
    .group = ATTACK_KERNEL,
    .control = CONTROL_APART,
    .inside = inside,
};
