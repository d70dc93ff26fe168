/*
 * devices: every node there is in /dev: null, zero, full, random, urandom, tty and terminals of its own, nothing of
 * the machine's.
 */
#include "attack/attack.h"

#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static char strange[128];

static int visit(const char *path, const struct stat *st, int type, struct FTW *position)
{
    unsigned number = minor(st->st_rdev);
    bool is_harmless = major(st->st_rdev) == 1 ? number == 3 || number == 5 || number >= 7
                                               : major(st->st_rdev) == 5 || major(st->st_rdev) == 136;

    (void)position;
    if (type == FTW_F && (S_ISBLK(st->st_mode) || (S_ISCHR(st->st_mode) && !is_harmless)))
        (void)snprintf(strange, sizeof strange, "%s", path);
    return 0;
}

static void inside(struct attempt *attempt)
{
    strange[0] = '\0';
    (void)nftw("/dev", visit, 16, FTW_PHYS);
    attempt_say(attempt, "nodes in /dev", strange[0] == '\0', "%s is there", strange);
    TRY(attempt, "removing one", unlink("/dev/hutch-attack-none"), EROFS, EACCES, EPERM);
    TRY(attempt, "changing one", chmod("/dev/null", 0666), EROFS, EPERM);
}

const struct attack attack_devices = {
    .name = "devices",
    .tries = "any device of the machine's in /dev",
    .group = ATTACK_FILES,
    .inside = inside,
};
