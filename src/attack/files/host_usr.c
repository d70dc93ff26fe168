/*
 * host-usr: the host's own /usr is what a sandbox runs: a change to it would be one to the host.
 */
#include "attack/attack.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    TRY(attempt, "a program", open("/usr/bin/env", O_WRONLY | O_CLOEXEC), EROFS, EACCES);
    TRY(attempt, "a new file", open("/usr/bin/hutch-attack-new", O_WRONLY | O_CREAT | O_CLOEXEC, 0755), EROFS, EACCES);
    TRY(attempt, "its mode", chmod("/usr/bin/env", 0755), EROFS, EPERM);
    TRY(attempt, "another name", rename("/usr/bin/hutch-attack-none", "/usr/bin/env"), EROFS, EACCES, ENOENT);
    TRY(attempt, "a hard link to it", link("/usr/bin/env", "/tmp/env"), EXDEV, EPERM);
    TRY(attempt, "its time", utimensat(AT_FDCWD, "/usr/bin/env", NULL, 0), EROFS, EACCES, EPERM);
}

const struct attack attack_host_usr = {
    .name = "host-usr",
    .tries = "changing the host's /usr",
    .group = ATTACK_FILES,
    .inside = inside,
};
