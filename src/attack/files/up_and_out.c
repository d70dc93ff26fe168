/*
 * up-and-out: from every folder up, for as long as there is an up: the root must be the end of it.
 */
#include "attack/attack.h"

#include <fcntl.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    static const char *const starts[] = {"/", "/usr", "/proc/self", "/dev", "/tmp", "/workspace", "/attack"};

    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        if (chdir(starts[i]) < 0)
            continue;
        for (int up = 0; up < 64; up++)
            ignore_result(chdir(".."));
        TRY(attempt, starts[i], open(attempt_canary("FILE") + 1, O_RDONLY | O_CLOEXEC), ENOENT);
    }
}

const struct attack attack_up_and_out = {
    .name = "up-and-out",
    .tries = "leaving through ..",
    .group = ATTACK_FILES,
    .control = CONTROL_BESIDE,
    .inside = inside,
};
