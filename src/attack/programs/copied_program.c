/*
 * copied-program: a copy of a listed program is not listed: wherever a sandbox can write, it could as well write
 * another one.
 */
#include "attack/attack.h"

static const char script[] = "for place in ('/tmp', '/run', os.getcwd()):\n"
                             "    with tempfile.TemporaryDirectory(dir=place) as folder:\n"
                             "        attempt(f'in {place}', lambda: os.execv(copy(PYTHON), EMPTY), EACCES)\n";

const struct attack attack_copied_program = {
    .name = "copied-program",
    .tries = "copies of programs, wherever it can write",
    .group = ATTACK_PROGRAMS,
    .control = CONTROL_WITHOUT,
    .script = script,
    .options = {"--only", "python3"},
};
