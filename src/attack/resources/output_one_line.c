/*
 * output-one-line: output that has no line's end, collected as a whole.
 */
#include "attack/attack.h"
#include "attack/work.h"

#include <unistd.h>

static void inside(struct attempt *attempt)
{
    (void)attempt;
    work_print(8 << 20);
}

const struct attack attack_output_one_line = {
    .name = "output-one-line",
    .tries = "8 MiB of output in one line",
    .group = ATTACK_RESOURCES,
    .variants = AS_NOBODY,
    .inside = inside,
    .streams = true,
    .streams_at_least = 8 << 20,
    .options = {"--memory", "32M"},
};
