#include "keeper/userns.h"

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/sys.h"

#include <stdio.h>
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

/* Until the other end of the pipe is closed: when we are not needed any more, or when the keeper was killed. */
static _Noreturn void wait_for_the_end(int end_fd)
{
    char byte;

    /* None of the keeper's locks and links lives on here, nor the end that is to be closed. */
    if (dup2(end_fd, 0) == 0 && sys_close_range(1, ~0U, 0) == 0)
        ignore_result(read(0, &byte, 1));
    _exit(0);
}

int userns_new(struct userns_map uids, struct userns_map gids, int *ret_fd, struct error *err)
{
    struct clone_args args = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
    int end[2];

    if (pipe2(end, O_CLOEXEC) < 0)
        return error_errno(err, "making a pipe");
    pid_t pid = sys_clone3(&args);
    if (pid < 0) {
        int r = error_errno(err, "cloning into a user namespace");
        fd_close_many(end, 2);
        return r;
    }
    if (pid == 0)
        wait_for_the_end(end[0]);
    int r = userns_write_maps(pid, uids, gids);
    int fd = r < 0 ? r : userns_open(pid);
    fd_close_many(end, 2);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    if (fd < 0)
        return error_set(err, ERROR_SYSTEM, -fd, "mapping ids in a user namespace");
    *ret_fd = fd;
    return 0;
}
