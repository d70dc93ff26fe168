/*
 * file-watches: a watch on a file that all sandboxes see would tell what the others run. The neighbour opens this one
 * all the time.
 */
#include "attack/attack.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    struct pollfd ready = {.fd = fd, .events = POLLIN};

    if (inotify_add_watch(fd, "/usr/bin/env", IN_OPEN | IN_ACCESS) < 0)
        attempt_say(attempt, "inotify", false, "it can't be watched at all");
    else
        attempt_say(attempt, "inotify", poll(&ready, 1, 100) == 0, "the neighbour was seen opening it");
}

const struct attack attack_file_watches = {
    .name = "file-watches",
    .tries = "watching what the neighbour opens",
    .group = ATTACK_NEIGHBOURS,
    .inside = inside,
};
