/*
 * device-in-template: a template with a node in it, here of /dev/zero: no mount but /dev takes nodes for devices.
 */
#include "attack/attack.h"
#include "attack/ground.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

static int prepare(const struct ground *ground)
{
    char path[GROUND_PATH_SIZE + 32];

    (void)snprintf(path, sizeof path, "%s/attack/node", ground->root);
    return mknod(path, S_IFCHR | 0666, makedev(1, 5)) < 0 ? -errno : 0;
}

static void inside(struct attempt *attempt)
{
    TRY(attempt, "opening it", open("/attack/node", O_RDONLY | O_CLOEXEC), EACCES);
}

const struct attack attack_device_in_template = {
    .name = "device-in-template",
    .tries = "a device node in a template",
    .group = ATTACK_FILES,
    .inside = inside,
    .prepare = prepare,
};
