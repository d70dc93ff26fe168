/*
 * set-uid-outside: a folder of the host's that is shown writable: a set-user-ID file made there would be real outside.
 */
#include "attack/attack.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    int fd = open("/shared/plain", O_WRONLY | O_CREAT | O_CLOEXEC, 0755);

    (void)umask(0);
    TRY(attempt, "chmod", syscall(SYS_chmod, "/shared/plain", 04755), EPERM);
    TRY(attempt, "chmod, group", syscall(SYS_chmod, "/shared/plain", 02755), EPERM);
    TRY(attempt, "chmod, a high bit set", syscall(SYS_chmod, "/shared/plain", 04755 | 1UL << 40), EPERM);
    TRY(attempt, "fchmod", syscall(SYS_fchmod, fd, 06755), EPERM);
    TRY(attempt, "fchmodat", syscall(SYS_fchmodat, AT_FDCWD, "/shared/plain", 04755), EPERM);
    TRY(attempt, "fchmodat2", syscall(452, AT_FDCWD, "/shared/plain", 04755, 0), EPERM, ENOSYS);
    TRY(attempt, "open", syscall(SYS_open, "/shared/by-open", O_CREAT | O_WRONLY, 04755), EPERM);
    TRY(attempt, "openat", syscall(SYS_openat, AT_FDCWD, "/shared/by-openat", O_CREAT | O_WRONLY, 02755), EPERM);
    TRY(attempt, "creat", syscall(SYS_creat, "/shared/by-creat", 04755), EPERM);
    TRY(attempt, "mknod", syscall(SYS_mknod, "/shared/by-mknod", S_IFREG | 04755, 0), EPERM, ENOSYS);
    TRY(attempt, "mkdir", syscall(SYS_mkdir, "/shared/by-mkdir", 02777), EPERM);
    TRY(attempt, "a device", syscall(SYS_mknod, "/shared/device", S_IFCHR | 0666, 0x101), EPERM, ENOSYS);
}

const struct attack attack_set_uid_outside = {
    .name = "set-uid-outside",
    .tries = "a set-user-ID file in a folder of the host's",
    .group = ATTACK_FILES,
    .inside = inside,
    .options = {"--dir", "@/shared:/shared:rw"},
};
