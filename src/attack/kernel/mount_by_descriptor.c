/*
 * mount-by-descriptor: the mount calls of Linux 5.2 and later, which older filters do not know.
 */
#include "attack/attack.h"
#include "base/sys.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    TRY(attempt, "fsopen", sys_fsopen("tmpfs", FSOPEN_CLOEXEC), EPERM, ENOSYS);
    TRY(attempt, "fspick", syscall(SYS_fspick, AT_FDCWD, "/", 0), EPERM, ENOSYS);
    TRY(attempt, "open_tree", sys_open_tree(AT_FDCWD, "/", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC), EPERM, ENOSYS);
    TRY(attempt, "move_mount", sys_move_mount(-1, "", AT_FDCWD, "/tmp", MOVE_MOUNT_F_EMPTY_PATH), EPERM, ENOSYS);
    TRY(attempt, "fsconfig", sys_fsconfig(-1, FSCONFIG_CMD_CREATE, NULL, NULL, 0), EPERM, ENOSYS);
    TRY(attempt, "fsmount", sys_fsmount(-1, 0, 0), EPERM, ENOSYS);
    TRY(attempt, "open_tree_attr", syscall(467, AT_FDCWD, "/", OPEN_TREE_CLONE, NULL, 0), EPERM, ENOSYS);
}

const struct attack attack_mount_by_descriptor = {
    .name = "mount-by-descriptor",
    .tries = "fsopen, open_tree, move_mount, fspick",
    .group = ATTACK_KERNEL,
    .control = CONTROL_APART,
    .inside = inside,
};
