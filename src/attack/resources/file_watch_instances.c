/*
 * file-watch-instances: inotify instances are counted per user: were that one shared, one sandbox could use up all.
 */
#include "attack/attack.h"

#include <sys/inotify.h>

static void inside(struct attempt *attempt)
{
    int last = 0;
    unsigned count = 0;

    for (; last >= 0 && count < 100000; count++)
        last = inotify_init1(IN_CLOEXEC);
    TRIED(attempt, "one more", last, errno, EMFILE, ENOMEM);
}

const struct attack attack_file_watch_instances = {
    .name = "file-watch-instances",
    .tries = "using up what is counted per user: inotify",
    .group = ATTACK_RESOURCES,
    .variants = AS_NOBODY,
    .inside = inside,
};
