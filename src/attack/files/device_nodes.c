/*
 * device-nodes: a node for the machine's memory or disk, made in every folder that can be written to.
 */
#include "attack/attack.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    static const char *const folders[] = {"/tmp", "/workspace", "/dev", "/dev/shm", "/run"};

    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        char path[64];
        (void)snprintf(path, sizeof path, "%s/hutch-attack-node", folders[i]);
        TRY(attempt, folders[i], mknod(path, S_IFCHR | 0600, makedev(1, 1)), EPERM, EACCES, EROFS, ENOSYS);
        TRY(attempt, "a disk", mknod(path, S_IFBLK | 0600, makedev(8, 0)), EPERM, EACCES, EROFS, ENOSYS);
        TRY(attempt, "opening it", open(path, O_RDONLY | O_CLOEXEC), ENOENT);
    }
}

const struct attack attack_device_nodes = {
    .name = "device-nodes",
    .tries = "making a node for the machine's memory and disk",
    .group = ATTACK_FILES,
    .inside = inside,
};
