/*
 * output-not-utf8: bytes that are no text, where text is expected.
 */
#include "attack/attack.h"

#include <unistd.h>

static void inside(struct attempt *attempt)
{
    char bytes[1024];

    for (int i = 0; i < 64; i++) {
        for (size_t j = 0; j < sizeof bytes; j++)
            bytes[j] = (char)(j * 7 + (size_t)i);
        ignore_result(write(STDERR_FILENO, bytes, sizeof bytes));
    }
    ignore_result(write(STDERR_FILENO, "\xed\xa0\x80\xf5\xc0\xaf", 6));
    attempt_say(attempt, "64 KiB of anything", true, "written");
}

const struct attack attack_output_not_utf8 = {
    .name = "output-not-utf8",
    .tries = "invalid UTF-8 in what is told as JSON",
    .group = ATTACK_RESOURCES,
    .variants = AS_NOBODY,
    .inside = inside,
};
