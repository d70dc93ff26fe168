#include "keeper/state.h"

#include "base/cleanup.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>

int state_open(const char *path, int *ret_fd, struct error *err)
{
    struct stat st;
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

    if (fd < 0 && errno == ENOENT) {
        if (mkdir(path, 0700) < 0)
            return error_errno(err, "making the state folder %s", path);
        fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    }
    if (fd < 0 || fstat(fd, &st) < 0)
        return error_errno(err, "opening the state folder %s", path);
    if (st.st_uid != 0 || (st.st_mode & 077) != 0)
        return error_set(err, ERROR_DENIED, EPERM,
                         "the state folder %s must be root's alone: chown root:root %s && chmod 0700 %s", path, path,
                         path);
    *ret_fd = TAKE_FD(fd);
    return 0;
}

int state_lock(int state_fd, const char *path, int *ret_lock_fd, struct error *err)
{
    _cleanup_fd_ int fd = openat(state_fd, "hutchd.lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0)
        return error_errno(err, "making %s/hutchd.lock", path);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno == EWOULDBLOCK)
            return error_set(err, ERROR_DENIED, 0,
                             "another hutchd uses the state folder %s; give this one its own with --state", path);
        return error_errno(err, "locking %s/hutchd.lock", path);
    }
    *ret_lock_fd = TAKE_FD(fd);
    return 0;
}

int state_open_gateway(int state_fd, uid_t uid, gid_t gid, int *ret_fd, struct error *err)
{
    struct stat st;
    bool is_new = mkdirat(state_fd, "gateway", 0700) == 0;

    if (!is_new && errno != EEXIST)
        return error_errno(err, "making the gateway's part of the state folder");
    _cleanup_fd_ int fd = openat(state_fd, "gateway", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || (is_new && (fchown(fd, uid, gid) < 0 || fchmod(fd, 0700) < 0)) || fstat(fd, &st) < 0)
        return error_errno(err, "opening the gateway's part of the state folder");
    if (st.st_uid != uid || (st.st_mode & 077) != 0)
        return error_set(err, ERROR_DENIED, EPERM,
                         "the folder gateway in the state folder must be the service user's alone (uid %u, mode 0700)",
                         (unsigned)uid);
    *ret_fd = TAKE_FD(fd);
    return 0;
}
