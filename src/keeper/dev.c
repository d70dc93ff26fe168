#include "keeper/dev.h"

#include "base/cleanup.h"
#include "base/sys.h"
#include "keeper/mnt.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

static const struct {
    const char *name;
    unsigned major;
    unsigned minor;
} nodes[] = {{"null", 1, 3}, {"zero", 1, 5}, {"full", 1, 7}, {"random", 1, 8}, {"urandom", 1, 9}, {"tty", 5, 0}};

static const struct {
    const char *name;
    const char *target;
} links[] = {{"fd", "/proc/self/fd"},
             {"stdin", "/proc/self/fd/0"},
             {"stdout", "/proc/self/fd/1"},
             {"stderr", "/proc/self/fd/2"},
             {"ptmx", "pts/ptmx"}};

static int fill(int fd)
{
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
        if (mknodat(fd, nodes[i].name, S_IFCHR | 0666, makedev(nodes[i].major, nodes[i].minor)) < 0)
            return -errno;
    }
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        if (symlinkat(links[i].target, fd, links[i].name) < 0)
            return -errno;
    }
    return mkdirat(fd, "pts", 0755) < 0 || mkdirat(fd, "shm", 0755) < 0 ? -errno : 0;
}

int dev_new(int *ret_fd, struct error *err)
{
    static const struct mnt_option options[] = {{"size", "64k"}, {"nr_inodes", "32"}, {"mode", "0755"}};
    struct mount_attr read_only = {.attr_set = MOUNT_ATTR_RDONLY};
    _cleanup_fd_ int fd = -1;

    int r = mnt_new("tmpfs", options, sizeof options / sizeof *options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, &fd);
    if (r == 0) {
        mode_t before = umask(0);
        r = fill(fd);
        (void)umask(before);
    }
    if (r == 0 && sys_mount_setattr(fd, "", AT_EMPTY_PATH, &read_only) < 0)
        r = -errno;
    if (r < 0)
        return error_set(err, ERROR_SYSTEM, -r, "making device nodes on a new tmpfs");
    *ret_fd = TAKE_FD(fd);
    return 0;
}
