/*
 * daemon: a process that left its session, its parent and its streams must end with the command it came from.
 */
#include "attack/attack.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    for (int i = 0; i < 4; i++) {
        if (fork() != 0)
            continue;
        (void)setsid();
        if (fork() != 0)
            _exit(0);
        for (int number = 1; number < 65; number++)
            (void)signal(number, SIG_IGN);
        for (int fd = 0; fd < 3; fd++)
            (void)close(fd);
        for (;;)
            (void)pause();
    }
    attempt_say(attempt, "four daemons", true, "left behind");
}

const struct attack attack_daemon = {
    .name = "daemon",
    .tries = "outliving the command as a daemon",
    .group = ATTACK_RESOURCES,
    .variants = AS_NOBODY | AS_ROOT,
    .inside = inside,
};
