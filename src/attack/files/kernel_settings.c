/*
 * kernel-settings: every file of /proc/sys, opened for writing; what is written there holds for the whole machine.
 * Nothing is written.
 */
#include "attack/attack.h"

#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

static unsigned opened;
static unsigned seen;

static int visit(const char *path, const struct stat *st, int type, struct FTW *position)
{
    (void)st;
    (void)position;
    if (type != FTW_F)
        return 0;
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    seen++;
    if (fd >= 0) {
        opened++;
        (void)close(fd);
    }
    return 0;
}

static void inside(struct attempt *attempt)
{
    opened = 0;
    seen = 0;
    (void)nftw("/proc/sys", visit, 16, FTW_PHYS);
    attempt_say(attempt, "files of /proc/sys", opened == 0 && seen > 100, "%u of %u can be opened", opened, seen);
}

const struct attack attack_kernel_settings = {
    .name = "kernel-settings",
    .tries = "opening every file of /proc/sys for writing",
    .group = ATTACK_FILES,
    .control = CONTROL_APART,
    .inside = inside,
};
