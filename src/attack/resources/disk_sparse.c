/*
 * disk-sparse: a file of a TiB with holes, filled in at places.
 */
#include "attack/attack.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    int fd = open("/workspace/sparse", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    unsigned count = 0;

    (void)signal(SIGXFSZ, SIG_IGN);
    ignore_result(ftruncate(fd, 1L << 40));
    while (count < 100000 && pwrite(fd, "x", 1, (off_t)count * (1 << 20)) == 1)
        count++;
    attempt_say(attempt, "pages in it", count <= (16 << 20) / 4096, "%u", count);
}

const struct attack attack_disk_sparse = {
    .name = "disk-sparse",
    .tries = "a sparse file of 1 TiB, filled in",
    .group = ATTACK_RESOURCES,
    .variants = AS_NOBODY,
    .inside = inside,
    .options = {"--disk", "16M"},
};
