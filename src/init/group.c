#include "init/group.h"

#include "base/cleanup.h"
#include "base/fd.h"
#include "wire/wire.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME_SIZE = 40 };

static void name_of(const struct group *group, const char *file, char name[NAME_SIZE])
{
    (void)snprintf(name, NAME_SIZE, WIRE_GROUP_NAME "%s", group->number, file);
}

static int make(struct groups *groups, struct group *ret_group)
{
    struct group group = {.is_there = true, .number = groups->made, .events_fd = -1};
    char name[NAME_SIZE];

    name_of(&group, "", name);
    if (mkdirat(groups->root_fd, name, 0755) < 0)
        return -errno;
    groups->made++;
    *ret_group = group;
    return 0;
}

void groups_prepare(struct groups *groups)
{
    if (groups->root_fd >= 0 && groups->spare_count == 0 && make(groups, &groups->spares[0]) == 0)
        groups->spare_count = 1;
}

int groups_take(struct groups *groups, struct group *ret_group)
{
    if (groups->spare_count == 0)
        return make(groups, ret_group);
    *ret_group = groups->spares[--groups->spare_count];
    return 0;
}

void groups_give_back(struct groups *groups, struct group *group)
{
    char name[NAME_SIZE];

    /* Whoever waited for its end has its descriptor in an event loop. */
    if (!group->is_spent && group->events_fd < 0 && groups->spare_count < GROUPS_SPARE) {
        groups->spares[groups->spare_count++] = *group;
    } else {
        close_fd(&group->events_fd);
        name_of(group, "", name);
        (void)unlinkat(groups->root_fd, name, AT_REMOVEDIR);
    }
    *group = GROUP_NONE;
}

int group_open(const struct groups *groups, const struct group *group)
{
    char name[NAME_SIZE];

    name_of(group, "", name);
    int fd = openat(groups->root_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    return fd < 0 ? -errno : fd;
}

/* Read through events_fd, if there is one: otherwise it would stay ready. */
bool group_is_empty(const struct groups *groups, const struct group *group)
{
    char name[NAME_SIZE];
    char text[128] = "";

    name_of(group, "/cgroup.events", name);
    ssize_t n = group->events_fd >= 0 ? pread(group->events_fd, text, sizeof text - 1, 0)
                                      : fd_read_file(groups->root_fd, name, text, sizeof text);
    return n > 0 && strstr(text, "populated 0") != NULL;
}

void group_wait(const struct groups *groups, struct group *group)
{
    char name[NAME_SIZE];

    name_of(group, "/cgroup.events", name);
    if (group->events_fd < 0)
        group->events_fd = openat(groups->root_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
}

int group_signal(const struct groups *groups, struct group *group, int signal_number)
{
    char name[NAME_SIZE];
    char pids[16384];
    char *save = NULL;

    if (signal_number == SIGKILL) {
        group->is_spent = true;
        name_of(group, "/cgroup.kill", name);
        return fd_write_file(groups->root_fd, name, "1");
    }
    name_of(group, "/cgroup.procs", name);
    ssize_t n = fd_read_file(groups->root_fd, name, pids, sizeof pids);
    if (n < 0)
        return (int)n;
    for (char *pid = strtok_r(pids, "\n", &save); pid != NULL; pid = strtok_r(NULL, "\n", &save))
        (void)kill((pid_t)strtol(pid, NULL, 10), signal_number);
    return 0;
}
