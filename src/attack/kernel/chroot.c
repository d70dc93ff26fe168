/*
 * chroot: the classic: a second chroot with the working folder left outside of it, then up and up.
 */
#include "attack/attack.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    int before = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    (void)mkdir("/tmp/hutch-attack-jail", 0755);
    TRY(attempt, "chroot", chroot("/tmp/hutch-attack-jail"), EPERM, ENOSYS);
    ignore_result(fchdir(before));
    for (int i = 0; i < 64; i++)
        ignore_result(chdir(".."));
    TRY(attempt, "chroot to where that led", chroot("."), EPERM, ENOSYS);
    (void)rmdir("/tmp/hutch-attack-jail");
    TRY(attempt, "the host's file", open(attempt_canary("FILE"), O_RDONLY | O_CLOEXEC), ENOENT, EACCES);
}

const struct attack attack_chroot = {
    .name = "chroot",
    .tries = "leaving a chroot with a second one",
    .group = ATTACK_KERNEL,
    .control = CONTROL_APART,
    .inside = inside,
};
