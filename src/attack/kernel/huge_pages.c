/*
 * huge-pages: huge pages are set aside for the whole machine and not counted as memory of a cgroup.
 */
#include "attack/attack.h"

#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    TRY(attempt, "mmap",
        syscall(SYS_mmap, NULL, 2 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_NORESERVE, -1, 0),
        EPERM, ENOSYS);
    TRY(attempt, "memfd_create", syscall(SYS_memfd_create, "x", 4), EPERM, ENOSYS);
    TRY(attempt, "shmget", shmget(IPC_PRIVATE, 2 << 20, 04000 | 0600), EPERM, ENOSYS);
}

const struct attack attack_huge_pages = {
    .name = "huge-pages",
    .tries = "taking the machine's huge pages",
    .group = ATTACK_KERNEL,
    .control = CONTROL_APART,
    .inside = inside,
};
