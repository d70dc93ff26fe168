/*
 * written-library: a library is code that a listed program loads: it needs no exec, only a file that can be mapped
 * executable.
 */
#include "attack/attack.h"

static const char script[] = "LIBRARY = mapped('libm.so')\n"
                             "\n"
                             "def by_descriptor():\n"
                             "    fd = os.open(copy(LIBRARY), os.O_RDONLY)\n"
                             "    ctypes.CDLL(f'/proc/self/fd/{fd}')\n"
                             "\n"
                             "def by_environment(variable):\n"
                             "    look = 'import sys; sys.exit(0 if any(\"r-xp\" in x and \"/copy\" in x for x in "
                             "open(\"/proc/self/maps\")) else 127)'\n"
                             "    os.dup2(1, 2)\n"
                             "    os.execve(PYTHON, ['python3', '-S', '-c', look], {variable: copy(LIBRARY)})\n"
                             "\n"
                             "attempt('dlopen', lambda: ctypes.CDLL(copy(LIBRARY)), LOADER_REFUSES)\n"
                             "attempt('dlopen of an open file', by_descriptor, LOADER_REFUSES)\n"
                             "attempt('LD_PRELOAD', lambda: by_environment('LD_PRELOAD'), LOADER_REFUSES)\n";

const struct attack attack_written_library = {
    .name = "written-library",
    .tries = "libraries that it wrote, with dlopen and LD_PRELOAD",
    .group = ATTACK_PROGRAMS,
    .control = CONTROL_WITHOUT,
    .script = script,
    .options = {"--only", "python3"},
};
