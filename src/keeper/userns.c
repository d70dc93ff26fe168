#include "keeper/userns.h"

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/sys.h"

#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static int write_map(pid_t pid, const char *file, struct userns_map map)
{
    char path[64];
    char text[64];

    (void)snprintf(path, sizeof path, "/proc/%d/%s", pid, file);
    (void)snprintf(text, sizeof text, "%u %u %u", map.inside, map.outside, map.count);
    return fd_write_file(AT_FDCWD, path, text);
}

int userns_write_maps(pid_t pid, struct userns_map uids, struct userns_map gids)
{
    int r = write_map(pid, "uid_map", uids);

    return r < 0 ? r : write_map(pid, "gid_map", gids);
}

int userns_open(pid_t pid)
{
    char path[64];

    (void)snprintf(path, sizeof path, "/proc/%d/ns/user", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* Nobody is left to end us when the keeper is killed: the kernel does it then. */
static _Noreturn void wait_for_the_end(pid_t parent)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (getppid() == parent)
        (void)pause();
    _exit(0);
}

int userns_new(struct userns_map uids, struct userns_map gids, int *ret_fd, struct error *err)
{
    _cleanup_fd_ int pidfd = -1;
    struct clone_args args = {.flags = CLONE_NEWUSER | CLONE_PIDFD, .pidfd = (uintptr_t)&pidfd, .exit_signal = SIGCHLD};
    pid_t parent = getpid();
    pid_t pid = sys_clone3(&args);

    if (pid < 0)
        return error_errno(err, "cloning into a user namespace");
    if (pid == 0)
        wait_for_the_end(parent);
    int r = userns_write_maps(pid, uids, gids);
    int fd = r < 0 ? r : userns_open(pid);
    (void)sys_pidfd_send_signal(pidfd, SIGKILL);
    (void)waitpid(pid, NULL, 0);
    if (fd < 0)
        return error_set(err, ERROR_SYSTEM, -fd, "mapping ids in a user namespace");
    *ret_fd = fd;
    return 0;
}
