/*
 * zombies: processes that have ended and that nobody waits for keep their number.
 */
#include "attack/attack.h"

#include <unistd.h>

static void inside(struct attempt *attempt)
{
    long last = 0;
    unsigned count = 0;
    int error = 0;

    while (last >= 0 && count < 4096) {
        last = fork();
        error = errno;
        if (last == 0)
            _exit(0);
        count++;
    }
    TRIED(attempt, "one more", last, error, EAGAIN);
    attempt_say(attempt, "how many", count <= 64, "%u", count);
}

const struct attack attack_zombies = {
    .name = "zombies",
    .tries = "an army of zombies",
    .group = ATTACK_RESOURCES,
    .variants = AS_NOBODY,
    .inside = inside,
    .options = {"--processes", "64"},
};
