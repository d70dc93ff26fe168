/*
 * sys: system calls that a libc of today may lack a wrapper for, as thin as they can be.
 *
 * Each returns what the kernel returns: a value, or -1 with errno. <sys/mount.h> is never included beside this
 * header: its constants come from the kernel's own <linux/mount.h>.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#ifndef AT_EMPTY_PATH
#define AT_EMPTY_PATH 0x1000
#endif
#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif
enum { SYS_UMOUNT_DETACH = 2 };

static inline int sys_open_tree(int dir, const char *path, unsigned flags)
{
    return (int)syscall(SYS_open_tree, dir, path, flags);
}

static inline int sys_move_mount(int from, const char *from_path, int to, const char *to_path, unsigned flags)
{
    return (int)syscall(SYS_move_mount, from, from_path, to, to_path, flags);
}

static inline int sys_mount_setattr(int dir, const char *path, unsigned flags, struct mount_attr *attr)
{
    return (int)syscall(SYS_mount_setattr, dir, path, flags, attr, sizeof *attr);
}

static inline int sys_fsopen(const char *name, unsigned flags)
{
    return (int)syscall(SYS_fsopen, name, flags);
}

static inline int sys_fsconfig(int fd, unsigned command, const char *key, const void *value, int aux)
{
    return (int)syscall(SYS_fsconfig, fd, command, key, value, aux);
}

static inline int sys_fsmount(int fd, unsigned flags, unsigned attributes)
{
    return (int)syscall(SYS_fsmount, fd, flags, attributes);
}

static inline int sys_mount(const char *source, const char *target, const char *type, unsigned long flags)
{
    return (int)syscall(SYS_mount, source, target, type, flags, NULL);
}

static inline int sys_pivot_root(const char *new_root, const char *put_old)
{
    return (int)syscall(SYS_pivot_root, new_root, put_old);
}

static inline int sys_umount2(const char *target, int flags)
{
    return (int)syscall(SYS_umount2, target, flags);
}

/* The kernel says EAGAIN when anything at all was renamed or mounted while it went up a "..": asked again, but not for
 * ever, because somebody may do that on purpose (openat2(2)). */
static inline int sys_openat2(int dir, const char *path, uint64_t flags, uint64_t resolve)
{
    struct open_how how = {.flags = flags, .resolve = resolve};
    int fd = -1;

    for (int attempt = 0; attempt < 64; attempt++) {
        fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof how);
        if (fd >= 0 || errno != EAGAIN)
            break;
    }
    return fd;
}

static inline pid_t sys_clone3(struct clone_args *args)
{
    return (pid_t)syscall(SYS_clone3, args, sizeof *args);
}

/* As fork, with these flags. */
static inline pid_t sys_clone(unsigned long flags)
{
    return (pid_t)syscall(SYS_clone, flags, NULL, NULL, NULL, NULL);
}

static inline int sys_pidfd_open(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

static inline int sys_pidfd_send_signal(int pidfd, int signal_number)
{
    return (int)syscall(SYS_pidfd_send_signal, pidfd, signal_number, NULL, 0);
}

static inline int sys_execveat(int fd, const char *path, char *const argv[], char *const envp[], int flags)
{
    return (int)syscall(SYS_execveat, fd, path, argv, envp, flags);
}

/* Of this process. glibc wants an enum for the resource where others want an int. */
static inline int sys_prlimit(int resource, const struct rlimit *limit, struct rlimit *ret_limit)
{
    return (int)syscall(SYS_prlimit64, 0, resource, limit, ret_limit);
}

static inline int sys_close_range(unsigned first, unsigned last, unsigned flags)
{
    return (int)syscall(SYS_close_range, first, last, flags);
}
