/*
 * memory-locks: each locked byte of a file is an object in the kernel.
 */
#include "attack/attack.h"
#include "attack/work.h"

#include <fcntl.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    int fd = open("/tmp/locked", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    uint64_t deadline_ns = work_deadline_ns(1000);
    long count = 0;
    int r = 0;

    while (r == 0 && count < 4000000 && work_goes_on(deadline_ns)) {
        /* Every second byte: neighbours would be joined. */
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = count * 2, .l_len = 1};
        r = fcntl(fd, F_SETLK, &lock);
        count++;
    }
    attempt_say(attempt, "locks", true, "%ld", count);
}

const struct attack attack_memory_locks = {
    .name = "memory-locks",
    .tries = "memory in file locks",
    .group = ATTACK_RESOURCES,
    .variants = AS_NOBODY,
    .inside = inside,
    .options = {"--memory", "64M"},
    .may_be_killed = true,
    .memory_most = 66 << 20,
};
