#include "keeper/oom.h"

#include "base/cleanup.h"
#include "base/fd.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

enum { PATH_SIZE = 128 };

void oom_init(struct oom *oom, int memory_fd, bool hybrid)
{
    *oom = (struct oom){.hybrid = hybrid, .memory_fd = memory_fd, .last_group = -1};
    for (int i = 0; i < OOM_GROUPS; i++)
        oom->fds[i] = -1;
}

void oom_release(struct oom *oom)
{
    for (int i = 0; i < OOM_GROUPS; i++)
        close_fd(&oom->fds[i]);
}

static int watch_v1(struct oom *oom, const char *cgroup, int group)
{
    char path[PATH_SIZE];
    char text[48];
    int *fd = &oom->fds[group];

    if (*fd < 0)
        *fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (*fd < 0)
        return -errno;
    (void)snprintf(path, sizeof path, "%s/memory.oom_control", cgroup);
    _cleanup_fd_ int control = openat(oom->memory_fd, path, O_RDONLY | O_CLOEXEC);
    if (control < 0)
        return -errno;
    (void)snprintf(text, sizeof text, "%d %d", *fd, control);
    (void)snprintf(path, sizeof path, "%s/cgroup.event_control", cgroup);
    int r = fd_write_file(oom->memory_fd, path, text);
    return r < 0 ? r : group;
}

static int watch_v2(struct oom *oom, const char *cgroup)
{
    char path[PATH_SIZE];
    int *fd = &oom->fds[0];

    if (*fd < 0)
        *fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (*fd < 0)
        return -errno;
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d/%s/memory.events", oom->memory_fd, cgroup);
    int watch = inotify_add_watch(*fd, path, IN_MODIFY);
    return watch < 0 ? -errno : watch;
}

int oom_watch(struct oom *oom, const char *cgroup, int *ret_watch, struct error *err)
{
    int group = (oom->last_group + 1) % OOM_GROUPS;
    int watch = oom->hybrid ? watch_v1(oom, cgroup, group) : watch_v2(oom, cgroup);

    if (watch < 0)
        return error_set(err, ERROR_SYSTEM, -watch, "watching for the memory limit");
    oom->last_group = group;
    *ret_watch = watch;
    return 0;
}

void oom_unwatch(struct oom *oom, int watch)
{
    if (oom->hybrid)
        oom->removals[watch]++;
    else /* by itself it would stay, with its inode, after the cgroup has gone */
        (void)inotify_rm_watch(oom->fds[0], watch);
}

int oom_group_of(const struct oom *oom, int watch)
{
    return oom->hybrid ? watch : 0;
}

int oom_fd(const struct oom *oom, int group)
{
    return oom->fds[group];
}

/*
 * An eventfd of v1 is also signalled, a little later, when its cgroup is removed. Each removal takes one signal off the
 * count; should that have been another's, the removal's own comes after it and is not taken off any more.
 */
static void take_v1(struct oom *oom, int group, void (*hit)(void *context, int watch), void *context)
{
    uint64_t count;

    if (read(oom->fds[group], &count, sizeof count) != (ssize_t)sizeof count)
        return;
    uint64_t expected = count < oom->removals[group] ? count : oom->removals[group];
    oom->removals[group] -= expected;
    if (count > expected)
        hit(context, group);
}

static void take_v2(const struct oom *oom, void (*hit)(void *context, int watch), void *context)
{
    _Alignas(struct inotify_event) char events[4096];
    ssize_t n;

    while ((n = read(oom->fds[0], events, sizeof events)) > 0) {
        for (ssize_t at = 0; at < n;) {
            struct inotify_event event;
            memcpy(&event, events + at, sizeof event);
            if ((event.mask & IN_Q_OVERFLOW) != 0)
                hit(context, -1);
            else if ((event.mask & IN_MODIFY) != 0)
                hit(context, event.wd);
            at += (ssize_t)(sizeof event + event.len);
        }
    }
}

void oom_take(struct oom *oom, int group, void (*hit)(void *context, int watch), void *context)
{
    if (oom->hybrid)
        take_v1(oom, group, hit, context);
    else
        take_v2(oom, hit, context);
}
