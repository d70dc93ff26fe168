/*
 * loader-as-program: the dynamic loader starts whatever it is given, execute bit or not: a list that has the loader on
 * it, as it must, would have everything on it.
 */
#include "attack/attack.h"

static const char script[] =
    "loader = mapped('ld-')\n"
    "plain = copy(PYTHON)\n"
    "os.chmod(plain, 0o644)\n"
    "fd = os.open(plain, os.O_RDONLY)\n"
    "os.set_inheritable(fd, True)\n"
    "\n"
    "def load(*words):\n"
    "    os.dup2(1, 2)\n"
    "    os.execv(loader, ['loader', *words])\n"
    "\n"
    "attempt('an unlisted program', lambda: load('/bin/sh', '-c', 'exit 0'), LOADER_REFUSES)\n"
    "attempt('a copy', lambda: load(copy(PYTHON), *EMPTY[1:]), LOADER_REFUSES)\n"
    "attempt('a copy without an execute bit', lambda: load(plain, *EMPTY[1:]), LOADER_REFUSES)\n"
    "attempt('an open file', lambda: load(f'/proc/self/fd/{fd}', *EMPTY[1:]), LOADER_REFUSES)\n"
    "attempt('a copy of the loader', lambda: os.execv(copy(loader), ['loader', PYTHON, *EMPTY[1:]]), EACCES)\n";

const struct attack attack_loader_as_program = {
    .name = "loader-as-program",
    .tries = "the dynamic loader, with programs that are not listed",
    .group = ATTACK_PROGRAMS,
    .control = CONTROL_WITHOUT,
    .script = script,
    .options = {"--only", "python3"},
};
