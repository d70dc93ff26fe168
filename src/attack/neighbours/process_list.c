/*
 * process-list: names and arguments of other sandboxes' and the host's processes.
 */
#include "attack/attack.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    DIR *folder = opendir("/proc");
    unsigned others = 0;

    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;)
        others +=
            entry->d_name[0] >= '0' && entry->d_name[0] <= '9' && strtol(entry->d_name, NULL, 10) != getpid() ? 1 : 0;
    if (folder != NULL)
        (void)closedir(folder);
    attempt_say(attempt, "/proc", folder != NULL && others == 0, "%u others are there", others);
}

const struct attack attack_process_list = {
    .name = "process-list",
    .tries = "other processes in /proc",
    .group = ATTACK_NEIGHBOURS,
    .control = CONTROL_BESIDE,
    .inside = inside,
};
