/*
 * memory-swapped: memory beyond the limit must not go to the machine's swap space instead.
 */
#include "attack/attack.h"
#include "attack/work.h"
#include "base/fd.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>

static void inside(struct attempt *attempt)
{
    struct sysinfo machine = {0};
    char text[4096];

    work_touch_memory(40UL << 20);
    ssize_t n = fd_read_file(AT_FDCWD, "/proc/self/status", text, sizeof text);
    const char *line = n > 0 ? strstr(text, "VmSwap:") : NULL;
    if (sysinfo(&machine) == 0 && machine.totalswap == 0)
        attempt_absent(attempt, "swap", "this machine has none");
    else
        attempt_say(attempt, "swap", line != NULL && strtol(line + 7, NULL, 10) == 0, "%s",
                    line != NULL ? line : "unknown");
}

const struct attack attack_memory_swapped = {
    .name = "memory-swapped",
    .tries = "memory in the machine's swap space",
    .group = ATTACK_RESOURCES,
    .variants = AS_NOBODY,
    .inside = inside,
    .options = {"--memory", "48M"},
};
