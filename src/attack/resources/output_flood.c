/*
 * output-flood: 4 GiB on standard output, as fast as they are taken.
 */
#include "attack/attack.h"
#include "attack/work.h"

#include <unistd.h>

static void inside(struct attempt *attempt)
{
    uint64_t deadline_ns = work_deadline_ns(3000);

    (void)attempt;
    for (uint64_t bytes = 0; bytes < 4UL << 30 && work_goes_on(deadline_ns); bytes += 65536)
        work_print(65536);
}

const struct attack attack_output_flood = {
    .name = "output-flood",
    .tries = "4 GiB of output",
    .group = ATTACK_RESOURCES,
    .variants = AS_NOBODY,
    .inside = inside,
    .streams = true,
    .streams_at_least = 4 << 20,
    .options = {"--memory", "32M"},
};
