/*
 * disk-fallocate: space that is promised without being written.
 */
#include "attack/attack.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    int fd = open("/workspace/promised", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    (void)signal(SIGXFSZ, SIG_IGN);
    TRY(attempt, "fallocate", fallocate(fd, 0, 0, 1L << 30), ENOSPC, EFBIG);
    TRY(attempt, "beyond the end", fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 1L << 30), ENOSPC, EFBIG);
    int error = posix_fallocate(fd, 0, 1L << 30);
    TRIED(attempt, "posix_fallocate", error != 0 ? -1 : 0, error, ENOSPC, EFBIG);
}

const struct attack attack_disk_fallocate = {
    .name = "disk-fallocate",
    .tries = "reserving 1 GiB with fallocate",
    .group = ATTACK_RESOURCES,
    .variants = AS_NOBODY,
    .inside = inside,
    .options = {"--disk", "16M"},
};
