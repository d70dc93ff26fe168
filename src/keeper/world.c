#include "keeper/world.h"

#include "base/cleanup.h"
#include "base/sys.h"
#include "keeper/instance.h"
#include "keeper/mnt.h"

#include <fcntl.h>
#include <sched.h>

static int make_root(int *ret_fd)
{
    static const struct mnt_option options[] = {{"size", "64k"}, {"nr_inodes", "16"}, {"mode", "0755"}};
    struct mount_attr read_only = {.attr_set = MOUNT_ATTR_RDONLY};
    _cleanup_fd_ int root = -1;
    _cleanup_fd_ int proc = -1;
    int r = mnt_new("tmpfs", options, sizeof options / sizeof *options,
                    MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, &root);

    if (r == 0)
        r = mnt_make_folders(root, "proc");
    if (r == 0)
        r = mnt_make_folders(root, &INSTANCES_FOLDER[1]);
    if (r == 0)
        r = mnt_copy(AT_FDCWD, "/proc", 0, &proc);
    if (r == 0 && sys_mount_setattr(root, "", AT_EMPTY_PATH, &read_only) < 0)
        r = -errno;
    /* Anywhere: a folder that every host has. */
    if (r == 0 && sys_move_mount(root, "", AT_FDCWD, "/proc", MOVE_MOUNT_F_EMPTY_PATH) < 0)
        r = -errno;
    if (r == 0)
        r = mnt_attach(proc, root, "proc");
    if (r == 0)
        *ret_fd = TAKE_FD(root);
    return r;
}

int world_leave_host(void)
{
    _cleanup_fd_ int root = -1;

    if (unshare(CLONE_NEWNS) < 0 || sys_mount(NULL, "/", NULL, MS_REC | MS_PRIVATE) < 0)
        return -errno;
    int r = make_root(&root);
    if (r < 0)
        return r;
    if (fchdir(root) < 0 || sys_pivot_root(".", ".") < 0 || sys_umount2(".", SYS_UMOUNT_DETACH) < 0 || chdir("/") < 0)
        return -errno;
    return 0;
}
