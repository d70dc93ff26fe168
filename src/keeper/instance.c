#include "keeper/instance.h"

#include "base/cleanup.h"
#include "base/fd.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>

/* Open a folder of ours, making it when missing. What another user could write to is not ours. */
static int open_own_folder(int dir, const char *path, mode_t mode, int *ret_fd, struct error *err)
{
    struct stat st;
    _cleanup_fd_ int fd = openat(dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

    if (fd < 0 && errno == ENOENT) {
        if (mkdirat(dir, path, mode) < 0 && errno != EEXIST)
            return error_errno(err, "making %s", path);
        fd = openat(dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        /* Whatever the umask: the sandbox's own child passes through. */
        if (fd >= 0 && fchmod(fd, mode) < 0)
            return error_errno(err, "making %s", path);
    }
    if (fd < 0 || fstat(fd, &st) < 0)
        return error_errno(err, "opening %s", path);
    if (st.st_uid != 0 || (st.st_mode & 022) != 0)
        return error_set(err, ERROR_DENIED, EPERM,
                         "%s must belong to root and be writable by root alone; look at it, then remove it", path);
    *ret_fd = TAKE_FD(fd);
    return 0;
}

/* 1 when the lock is ours, 0 when it is another's or the file has been swept away in between, or -errno. */
static int take_lock(int fd)
{
    struct stat st;

    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK ? 0 : -errno;
    if (fstat(fd, &st) < 0)
        return -errno;
    return st.st_nlink > 0 ? 1 : 0;
}

static int claim(struct instance *instance, struct error *err)
{
    for (int attempt = 0; attempt < 16; attempt++) {
        uint64_t number;
        if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
            return error_errno(err, "choosing an instance id");
        (void)snprintf(instance->id, sizeof instance->id, "%016llx", (unsigned long long)number);
        _cleanup_fd_ int fd =
            openat(instance->instances_fd, instance->id, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
            return error_errno(err, "making %s/%s", INSTANCES_FOLDER, instance->id);
        /* A sweep may have come between open and lock, taken us for dead and be about to remove the file. */
        int r = take_lock(fd);
        if (r == 1) {
            instance->lock_fd = TAKE_FD(fd);
            return 0;
        }
        if (r < 0) {
            (void)unlinkat(instance->instances_fd, instance->id, 0);
            return error_set(err, ERROR_SYSTEM, -r, "locking %s/%s", INSTANCES_FOLDER, instance->id);
        }
    }
    return error_set(err, ERROR_SYSTEM, EAGAIN, "claiming an instance under %s", INSTANCES_FOLDER);
}

int instance_init(struct instance *instance, struct error *err)
{
    *instance = INSTANCE_EMPTY;
    int r = open_own_folder(AT_FDCWD, "/run/hutch", 0755, &instance->run_fd, err);
    if (r == 0)
        r = open_own_folder(instance->run_fd, "instances", 0700, &instance->instances_fd, err);
    if (r == 0)
        r = claim(instance, err);
    if (r < 0) {
        instance_release(instance);
        error_wrap(err, "claiming an instance");
    }
    return r;
}

int instance_adopt(struct instance *instance, const char *id)
{
    *instance = INSTANCE_EMPTY;
    (void)snprintf(instance->id, sizeof instance->id, "%s", id);
    instance->instances_fd = open(INSTANCES_FOLDER, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    return instance->instances_fd < 0 ? -errno : 0;
}

int instance_forget(struct instance *instance)
{
    int r = unlinkat(instance->instances_fd, instance->id, 0) < 0 && errno != ENOENT ? -errno : 0;

    close_fd(&instance->instances_fd);
    return r;
}

void instance_release(struct instance *instance)
{
    if (instance->lock_fd >= 0)
        (void)unlinkat(instance->instances_fd, instance->id, 0);
    close_fd(&instance->lock_fd);
    close_fd(&instance->instances_fd);
    close_fd(&instance->run_fd);
}

static bool is_id(const char *name)
{
    return strlen(name) == INSTANCE_ID_SIZE - 1 && strspn(name, "0123456789abcdef") == INSTANCE_ID_SIZE - 1;
}

void instance_sweep(const struct instance *instance, bool (*remove)(void *context, const char *id), void *context)
{
    int fd = openat(instance->instances_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;

    if (folder == NULL) {
        close_fd(&fd);
        return;
    }
    while ((entry = readdir(folder)) != NULL) {
        if (!is_id(entry->d_name) || strcmp(entry->d_name, instance->id) == 0)
            continue;
        _cleanup_fd_ int lock = openat(instance->instances_fd, entry->d_name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
        if (lock < 0 || take_lock(lock) != 1)
            continue;
        if (remove(context, entry->d_name))
            (void)unlinkat(instance->instances_fd, entry->d_name, 0);
    }
    (void)closedir(folder);
}
