#include "keeper/mnt.h"

#include "base/cleanup.h"
#include "base/sys.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { BENEATH = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS };

int mnt_new(const char *type, const struct mnt_option *options, size_t option_count, unsigned attributes, int *ret_fd)
{
    _cleanup_fd_ int fs = sys_fsopen(type, FSOPEN_CLOEXEC);

    if (fs < 0)
        return -errno;
    for (size_t i = 0; i < option_count; i++) {
        unsigned command = options[i].value != NULL ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG;
        if (sys_fsconfig(fs, command, options[i].key, options[i].value, 0) < 0)
            return -errno;
    }
    if (sys_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return -errno;
    int fd = sys_fsmount(fs, FSMOUNT_CLOEXEC, attributes);
    if (fd < 0)
        return -errno;
    *ret_fd = fd;
    return 0;
}

int mnt_copy(int dir, const char *path, uint64_t attributes, int *ret_fd)
{
    /* A copy of a shared mount is its peer: what the host mounts below later would show up here. */
    struct mount_attr attr = {.attr_set = attributes, .propagation = MS_PRIVATE};
    _cleanup_fd_ int fd = sys_open_tree(dir, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);

    if (fd < 0)
        return -errno;
    if (attributes != 0 && sys_mount_setattr(fd, "", AT_EMPTY_PATH, &attr) < 0)
        return -errno;
    *ret_fd = TAKE_FD(fd);
    return 0;
}

int mnt_idmap(int fd, int userns_fd)
{
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t)(unsigned)userns_fd};

    return sys_mount_setattr(fd, "", AT_EMPTY_PATH, &attr) < 0 ? -errno : 0;
}

int mnt_attach(int fd, int dir, const char *path)
{
    /* move_mount itself follows no symlink at the end of a path: a plain name leads nowhere else. */
    if (strchr(path, '/') == NULL && path[0] != '.')
        return sys_move_mount(fd, "", dir, path, MOVE_MOUNT_F_EMPTY_PATH) < 0 ? -errno : 0;
    _cleanup_fd_ int target = sys_openat2(dir, path, O_PATH | O_CLOEXEC, BENEATH);

    if (target < 0)
        return -errno;
    if (sys_move_mount(fd, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
        return -errno;
    return 0;
}

int mnt_open_folder(int dir, const char *path)
{
    int fd = sys_openat2(dir, path, O_PATH | O_DIRECTORY | O_CLOEXEC, BENEATH);

    return fd < 0 ? -errno : fd;
}

int mnt_make_folders(int dir, const char *path)
{
    char part[4096];
    size_t length = strlen(path);

    if (length >= sizeof part)
        return -ENAMETOOLONG;
    for (size_t i = 1; i <= length; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        if (mkdirat(dir, part, 0755) < 0 && errno != EEXIST)
            return -errno;
    }
    return 0;
}
