/*
 * file-handles: a file by number instead of by name reaches everything on the same file system (the "shocker" of
 * 2014).
 */
#include "attack/attack.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    struct {
        unsigned bytes;
        int type;
        unsigned long inode;
        char rest[120];
    } handle = {.bytes = 128};
    int mount_id = 0;

    TRY(attempt, "name_to_handle_at", syscall(SYS_name_to_handle_at, AT_FDCWD, "/usr", &handle, &mount_id, 0), EPERM,
        ENOSYS);
    /* Inode 2 is the root of most file systems. Outside a stale or strange handle is ESTALE or EINVAL. */
    handle.bytes = 8;
    handle.type = 1;
    handle.inode = 2;
    TRY(attempt, "open_by_handle_at", syscall(SYS_open_by_handle_at, AT_FDCWD, &handle, O_RDONLY), EPERM, ENOSYS);
}

const struct attack attack_file_handles = {
    .name = "file-handles",
    .tries = "opening the host's files by their number",
    .group = ATTACK_KERNEL,
    .control = CONTROL_APART,
    .inside = inside,
};
