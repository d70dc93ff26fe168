#include "keeper/proc.h"

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/sys.h"
#include "keeper/mnt.h"

#include <stdbool.h>
#include <sys/ioctl.h>

#ifndef PIDFD_GET_PID_NAMESPACE
#define PIDFD_GET_PID_NAMESPACE _IO(0xFF, 5)
#endif

/* World-readable facts of the whole machine that are none of a tenant's business, and doors that stay shut. */
static const struct {
    const char *path;
    bool is_folder;
} masked[] = {
    {"acpi", true},       {"asound", true},         {"bus", true},         {"cmdline", false},
    {"config.gz", false}, {"diskstats", false},     {"interrupts", false}, {"kallsyms", false},
    {"kcore", false},     {"key-users", false},     {"keys", false},       {"latency_stats", false},
    {"modules", false},   {"partitions", false},    {"pressure", true},    {"sched_debug", false},
    {"scsi", true},       {"sysrq-trigger", false}, {"timer_list", false}, {"timer_stats", false},
};

static const char *const read_only[] = {"fs", "irq"};

int proc_new(int pidns, int *ret_fd)
{
    _cleanup_fd_ int fs = sys_fsopen("proc", FSOPEN_CLOEXEC);

    if (fs < 0)
        return -errno;
    if (pidns >= 0 && sys_fsconfig(fs, FSCONFIG_SET_FD, "pidns", NULL, pidns) < 0)
        return errno == EINVAL ? -EOPNOTSUPP : -errno;
    if (sys_fsconfig(fs, FSCONFIG_SET_STRING, "hidepid", "invisible", 0) < 0 ||
        sys_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return -errno;
    int fd = sys_fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
    if (fd < 0)
        return -errno;
    *ret_fd = fd;
    return 0;
}

/* Attach a copy of source/path over a file of /proc, where this kernel has it. */
static int cover(int proc_fd, int source, const char *path, uint64_t attributes, const char *target)
{
    _cleanup_fd_ int fd = -1;

    /* Asked before: to let go of a copy that found no place takes a grace period of RCU. */
    if (faccessat(proc_fd, target, F_OK, 0) < 0)
        return errno == ENOENT ? 0 : -errno;
    int r = mnt_copy(source, path, attributes, &fd);
    return r < 0 ? r : mnt_attach(fd, proc_fd, target);
}

int proc_mask(int proc_fd, const struct proc_covers *covers, const char **ret_place)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < sizeof masked / sizeof *masked; i++) {
        *ret_place = masked[i].path;
        if (masked[i].is_folder)
            r = cover(proc_fd, covers->empty_dir, covers->empty, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV, masked[i].path);
        else
            r = cover(proc_fd, covers->null_dir, "null", 0, masked[i].path);
    }
    for (size_t i = 0; r == 0 && i < sizeof read_only / sizeof *read_only; i++) {
        *ret_place = read_only[i];
        r = cover(proc_fd, proc_fd, read_only[i], MOUNT_ATTR_RDONLY, read_only[i]);
    }
    return r;
}

int proc_seal(int proc_fd, const char **ret_place)
{
    *ret_place = "forbidding nested user namespaces";
    int r = fd_write_file(proc_fd, "sys/user/max_user_namespaces", "0");
    if (r < 0)
        return r;
    *ret_place = "sys";
    return cover(proc_fd, proc_fd, "sys", MOUNT_ATTR_RDONLY, "sys");
}

int proc_pidns_of(int pidfd)
{
    int fd = ioctl(pidfd, PIDFD_GET_PID_NAMESPACE, 0);

    if (fd >= 0)
        return fd;
    return errno == ENOTTY || errno == EINVAL ? -EOPNOTSUPP : -errno;
}
