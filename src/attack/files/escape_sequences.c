/*
 * escape-sequences: output that moves the reader's terminal, sets its title or types into it: --json shows it as text.
 */
#include "attack/attack.h"

#include <string.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    static const char evil[] = "\033]0;attacked\007\033[2J\x9b\x31\x6d\xc2\x9b\x31\x6d\r\b\x7f";

    ignore_result(write(STDERR_FILENO, evil, sizeof evil));
    attempt_say(attempt, "title, screen, colour", true, "%s", "\033]0;attacked\007");
}

const struct attack attack_escape_sequences = {
    .name = "escape-sequences",
    .tries = "escape sequences in what is told as JSON",
    .group = ATTACK_FILES,
    .inside = inside,
};
