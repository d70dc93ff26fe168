/*
 * read-only-root: the root is read-only: users, libraries and the loader's settings stay as they are.
 */
#include "attack/attack.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    TRY(attempt, "/etc/passwd", open("/etc/passwd", O_WRONLY | O_CLOEXEC), EROFS, EACCES);
    TRY(attempt, "/etc/ld.so.preload", open("/etc/ld.so.preload", O_WRONLY | O_CREAT | O_CLOEXEC, 0644), EROFS, EACCES);
    TRY(attempt, "a folder in /", mkdir("/hutch-attack", 0755), EROFS, EACCES);
    TRY(attempt, "removing one", rmdir("/opt"), EROFS, EACCES, EBUSY);
    TRY(attempt, "a symlink", symlink("/tmp", "/hutch-attack"), EROFS, EACCES);
    TRY(attempt, "the program shown with --dir", unlink("/attack/hutch-attack"), EROFS, EACCES);
}

const struct attack attack_read_only_root = {
    .name = "read-only-root",
    .tries = "changing / and /etc",
    .group = ATTACK_FILES,
    .inside = inside,
};
