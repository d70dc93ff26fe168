/*
 * memory-as-program: a file that lies in memory alone has no place that could be noexec, and no path for a list
 * (fileless execution).
 */
#include "attack/attack.h"

static const char script[] =
    "def fill(fd):\n"
    "    with open(PYTHON, 'rb') as file:\n"
    "        os.sendfile(fd, file.fileno(), 0, os.stat(PYTHON).st_size)\n"
    "    os.execve(fd, EMPTY, os.environ)\n"
    "\n"
    "def without_name():\n"
    "    fd = os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o755)\n"
    "    readable = os.open(f'/proc/self/fd/{fd}', os.O_RDONLY)\n"
    "    with open(PYTHON, 'rb') as file:\n"
    "        os.sendfile(fd, file.fileno(), 0, os.stat(PYTHON).st_size)\n"
    "    os.close(fd)\n"
    "    os.execve(readable, EMPTY, os.environ)\n"
    "\n"
    "attempt('memfd_create', lambda: fill(os.memfd_create('x')), ENOSYS, EPERM)\n"
    "attempt('memfd_create, sealable', lambda: fill(os.memfd_create('x', os.MFD_ALLOW_SEALING)), ENOSYS, EPERM)\n"
    "attempt('a file without a name', without_name, EACCES)\n";

const struct attack attack_memory_as_program = {
    .name = "memory-as-program",
    .tries = "a program that is a file in memory (memfd_create)",
    .group = ATTACK_PROGRAMS,
    .control = CONTROL_WITHOUT,
    .script = script,
    .options = {"--only", "python3"},
};
