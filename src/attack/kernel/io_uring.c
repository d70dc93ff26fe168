/*
 * io-uring: a ring of calls that the kernel makes for the caller, past every filter of single calls, and the newest
 * large piece of kernel (CVE-2022-29582, CVE-2023-2598).
 */
#include "attack/attack.h"

#include <linux/io_uring.h>
#include <sys/syscall.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    struct io_uring_params ring = {0};

    TRY(attempt, "io_uring_setup", syscall(SYS_io_uring_setup, 4, &ring), EPERM, ENOSYS);
    TRY(attempt, "io_uring_register", syscall(SYS_io_uring_register, -1, 0, NULL, 0), EPERM, ENOSYS);
    TRY(attempt, "io_uring_enter", syscall(SYS_io_uring_enter, -1, 0, 0, 0, NULL, 0), EPERM, ENOSYS);
}

const struct attack attack_io_uring = {
    .name = "io-uring",
    .tries = "a ring that makes system calls past every filter",
    .group = ATTACK_KERNEL,
    .control = CONTROL_APART,
    .inside = inside,
};
