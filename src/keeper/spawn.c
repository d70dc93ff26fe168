#include "keeper/spawn.h"

#include <string.h>

int spawn_from_message(const struct wire_spawn *message, const int *fds, size_t fd_count, struct spawn *ret_spawn)
{
    bool has_usr = (message->flags & WIRE_SPAWN_USR) != 0;
    bool has_disk = (message->flags & WIRE_SPAWN_IMAGE) != 0;
    bool has_policy = (message->flags & WIRE_SPAWN_ONLY) != 0;
    bool has_network = (message->flags & WIRE_SPAWN_NETWORK) != 0;
    size_t dirs = message->dirs.count;
    struct spawn spawn = {
        .sandbox = message->sandbox,
        .flags = message->flags,
        .uid_first = message->uid_first,
        .user = message->user,
        .disk_bytes = message->disk_bytes,
        .disk_inodes = message->disk_inodes,
        .hostname = message->hostname,
        .dirs = message->dirs,
        .programs = message->programs,
        .usr_fd = -1,
        .disk_fd = -1,
        .policy_fd = -1,
        .airlock_fd = -1,
        .task_count = message->tasks,
        .layer_count = message->layers,
        .dir_count = dirs,
    };

    if (spawn.task_count > SPAWN_TASKS_MAX || spawn.layer_count > SPAWN_LAYERS_MAX || spawn.layer_count == 0 ||
        dirs > WIRE_DIRS_MAX ||
        fd_count != 3 + (has_usr ? 1U : 0U) + (has_disk ? 1U : 0U) + (has_policy ? 1U : 0U) + (has_network ? 1U : 0U) +
                        spawn.task_count + spawn.layer_count + dirs)
        return -EBADMSG;
    spawn.guest_fd = *fds++;
    spawn.init_fd = *fds++;
    spawn.cgroup_fd = *fds++;
    if (has_usr)
        spawn.usr_fd = *fds++;
    if (has_disk)
        spawn.disk_fd = *fds++;
    if (has_policy)
        spawn.policy_fd = *fds++;
    if (has_network)
        spawn.airlock_fd = *fds++;
    memcpy(spawn.task_fds, fds, spawn.task_count * sizeof *fds);
    fds += spawn.task_count;
    memcpy(spawn.layer_fds, fds, spawn.layer_count * sizeof *fds);
    fds += spawn.layer_count;
    memcpy(spawn.dir_fds, fds, dirs * sizeof *fds);
    *ret_spawn = spawn;
    return 0;
}

size_t spawn_to_message(const struct spawn *spawn, struct wire_spawn *message, int *fds)
{
    int *at = fds;

    *message = (struct wire_spawn){
        .sandbox = spawn->sandbox,
        .flags = spawn->flags,
        .uid_first = spawn->uid_first,
        .user = spawn->user,
        .tasks = (uint8_t)spawn->task_count,
        .layers = (uint8_t)spawn->layer_count,
        .disk_bytes = spawn->disk_bytes,
        .disk_inodes = spawn->disk_inodes,
        .hostname = spawn->hostname,
        .dirs = spawn->dirs,
        .programs = spawn->programs,
    };
    *at++ = spawn->guest_fd;
    *at++ = spawn->init_fd;
    *at++ = spawn->cgroup_fd;
    if ((spawn->flags & WIRE_SPAWN_USR) != 0)
        *at++ = spawn->usr_fd;
    if ((spawn->flags & WIRE_SPAWN_IMAGE) != 0)
        *at++ = spawn->disk_fd;
    if (spawn_is_listed(spawn))
        *at++ = spawn->policy_fd;
    if ((spawn->flags & WIRE_SPAWN_NETWORK) != 0)
        *at++ = spawn->airlock_fd;
    for (size_t i = 0; i < spawn->task_count; i++)
        *at++ = spawn->task_fds[i];
    for (size_t i = 0; i < spawn->layer_count; i++)
        *at++ = spawn->layer_fds[i];
    for (size_t i = 0; i < spawn->dir_count; i++)
        *at++ = spawn->dir_fds[i];
    return (size_t)(at - fds);
}
