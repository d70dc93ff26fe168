/*
 * proc-writable: every file of /proc that is not about a process, opened for writing. Nothing is written.
 */
#include "attack/attack.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static char opened[128];
static unsigned seen;

static int visit(const char *path, const struct stat *st, int type, struct FTW *position)
{
    struct stat now = {0};

    (void)st;
    (void)position;
    if (type != FTW_F)
        return 0;
    int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    seen++;
    /* What is masked is /dev/null. */
    if (fd >= 0 && fstat(fd, &now) == 0 && !(S_ISCHR(now.st_mode) && now.st_rdev == makedev(1, 3)))
        (void)snprintf(opened, sizeof opened, "%s", path);
    if (fd >= 0)
        (void)close(fd);
    return 0;
}

static void inside(struct attempt *attempt)
{
    DIR *folder = opendir("/proc");

    opened[0] = '\0';
    seen = 0;
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        char path[300];
        /* Processes have files of their own. */
        if ((entry->d_name[0] >= '0' && entry->d_name[0] <= '9') || entry->d_name[0] == '.')
            continue;
        (void)snprintf(path, sizeof path, "/proc/%s", entry->d_name);
        (void)nftw(path, visit, 16, FTW_PHYS);
    }
    if (folder != NULL)
        (void)closedir(folder);
    attempt_say(attempt, "files of /proc", opened[0] == '\0' && seen > 20, "%s can be opened", opened);
}

const struct attack attack_proc_writable = {
    .name = "proc-writable",
    .tries = "opening every file of /proc for writing",
    .group = ATTACK_FILES,
    .inside = inside,
};
