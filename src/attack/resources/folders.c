/*
 * folders: folders in folders in folders: removing them must not exhaust whoever does it.
 */
#include "attack/attack.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    char name[201];
    unsigned depth = 0;

    (void)memset(name, 'd', 200);
    name[200] = '\0';
    if (chdir("/tmp") < 0)
        return;
    for (; depth < 2000; depth++) {
        if (mkdir(name, 0755) < 0 || chdir(name) < 0)
            break;
    }
    attempt_say(attempt, "how deep", depth == 2000 || errno == ENOSPC, "%u, then %d", depth, errno);
}

const struct attack attack_folders = {
    .name = "folders",
    .tries = "folders 2,000 deep",
    .group = ATTACK_RESOURCES,
    .variants = AS_NOBODY,
    .inside = inside,
};
