/*
 * proc-of-init: everything that /proc says about PID 1: its memory, its environment, its root, its open files, its
 * namespaces.
 */
#include "attack/attack.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    static const char *const names[] = {"mem", "environ", "root",   "cwd",  "fd",
                                        "exe", "maps",    "ns/mnt", "stat", "cmdline"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[64];
        (void)snprintf(path, sizeof path, "/proc/1/%s", names[i]);
        TRY(attempt, path, open(path, O_RDONLY | O_CLOEXEC), ENOENT, EACCES);
    }
}

const struct attack attack_proc_of_init = {
    .name = "proc-of-init",
    .tries = "memory, environment, root and files of PID 1",
    .group = ATTACK_FILES,
    .control = CONTROL_APART,
    .inside = inside,
};
