/*
 * cgroup-files: limits are files: who can write one has none. No cgroup is mounted, and its own path tells nothing.
 */
#include "attack/attack.h"
#include "base/fd.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

static void inside(struct attempt *attempt)
{
    static char text[16384];
    ssize_t n = fd_read_file(AT_FDCWD, "/proc/self/mountinfo", text, sizeof text);

    attempt_say(attempt, "a mounted cgroup", n > 0 && strstr(text, " - cgroup") == NULL, "one is mounted");
    n = fd_read_file(AT_FDCWD, "/proc/self/cgroup", text, sizeof text);
    attempt_say(attempt, "where in the tree", n > 0 && strstr(text, "hutch") == NULL && strstr(text, "/..") == NULL,
                "%s", text);
    TRY(attempt, "memory.max", open("/sys/fs/cgroup/memory.max", O_WRONLY | O_CLOEXEC), ENOENT);
}

const struct attack attack_cgroup_files = {
    .name = "cgroup-files",
    .tries = "writing a cgroup file",
    .group = ATTACK_FILES,
    .inside = inside,
};
