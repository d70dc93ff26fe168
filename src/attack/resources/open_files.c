/*
 * open-files: descriptors, of one process and of many.
 */
#include "attack/attack.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Descriptors of the parent are there already: each child makes its table as full. */
static int eventfd_like(void)
{
    return open("/dev/zero", O_RDONLY | O_CLOEXEC);
}

static void inside(struct attempt *attempt)
{
    int last = 0;
    int status = 0;

    while (last >= 0 && last < 100000)
        last = open("/dev/null", O_RDONLY | O_CLOEXEC);
    TRIED(attempt, "one process", last, errno, EMFILE);
    for (int i = 0; i < 16; i++) {
        if (fork() == 0) {
            while (eventfd_like() >= 0)
                continue;
            _exit(0);
        }
    }
    while (wait(&status) > 0)
        continue;
    attempt_say(attempt, "sixteen processes", true, "ended");
}

const struct attack attack_open_files = {
    .name = "open-files",
    .tries = "descriptors without end",
    .group = ATTACK_RESOURCES,
    .variants = AS_NOBODY,
    .inside = inside,
};
