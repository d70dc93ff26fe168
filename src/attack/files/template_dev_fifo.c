/*
 * template-dev-fifo: a template whose /dev is a FIFO: whoever opens it waits for ever.
 */
#include "attack/attack.h"
#include "attack/ground.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static int prepare(const struct ground *ground)
{
    char path[GROUND_PATH_SIZE + 32];

    (void)snprintf(path, sizeof path, "%s/dev", ground->root);
    return rmdir(path) < 0 || mkfifo(path, 0666) < 0 ? -errno : 0;
}

const struct attack attack_template_dev_fifo = {
    .name = "template-dev-fifo",
    .tries = "a template whose /dev is a FIFO",
    .group = ATTACK_FILES,
    .prepare = prepare,
    .status = 125,
    .says = "step",
};
