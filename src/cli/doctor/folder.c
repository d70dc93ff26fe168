#include "cli/doctor/folder.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif
#ifndef ZFS_SUPER_MAGIC
#define ZFS_SUPER_MAGIC 0x2fc12fc1
#endif
#ifndef BCACHEFS_SUPER_MAGIC
#define BCACHEFS_SUPER_MAGIC 0xca451a4e
#endif
#ifndef FUSE_SUPER_MAGIC
#define FUSE_SUPER_MAGIC 0x65735546
#endif

static const struct {
    unsigned long magic;
    const char *name;
} kinds[] = {
    {EXT4_SUPER_MAGIC, "ext4"},
    {XFS_SUPER_MAGIC, "xfs"},
    {BTRFS_SUPER_MAGIC, "btrfs"},
    {TMPFS_MAGIC, "tmpfs"},
    {OVERLAYFS_SUPER_MAGIC, "overlay"},
    {NFS_SUPER_MAGIC, "nfs"},
    {F2FS_SUPER_MAGIC, "f2fs"},
    {ZFS_SUPER_MAGIC, "zfs"},
    {BCACHEFS_SUPER_MAGIC, "bcachefs"},
    {FUSE_SUPER_MAGIC, "fuse"},
    {V9FS_MAGIC, "9p"},
    {MSDOS_SUPER_MAGIC, "vfat"},
    {SQUASHFS_MAGIC, "squashfs"},
    {RAMFS_MAGIC, "ramfs"},
};

int folder_nearest(const char *path, char ret_path[FOLDER_PATH_SIZE])
{
    int n = snprintf(ret_path, FOLDER_PATH_SIZE, "%s", path);

    if (n <= 0 || n >= FOLDER_PATH_SIZE)
        return -ENAMETOOLONG;
    for (;;) {
        int fd = open(ret_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0)
            return fd;
        char *slash = strrchr(ret_path, '/');
        if (errno != ENOENT || strcmp(ret_path, "/") == 0 || strcmp(ret_path, ".") == 0)
            return -errno;
        if (slash == NULL)
            (void)snprintf(ret_path, FOLDER_PATH_SIZE, ".");
        else
            slash[slash == ret_path ? 1 : 0] = '\0';
    }
}

const char *folder_file_system(int fd)
{
    struct statfs st;

    for (size_t i = 0; fstatfs(fd, &st) == 0 && i < sizeof kinds / sizeof *kinds; i++) {
        if ((unsigned long)st.f_type == kinds[i].magic)
            return kinds[i].name;
    }
    return "a file system";
}
