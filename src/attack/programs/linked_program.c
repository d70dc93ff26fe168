/*
 * linked-program: another way to the same file: what a list says of a path must hold for hard links and for open
 * descriptors.
 */
#include "attack/attack.h"

static const char script[] =
    "def hard_link():\n"
    "    path = copy(PYTHON)\n"
    "    os.link(path, path + '-link')\n"
    "    os.execv(path + '-link', EMPTY)\n"
    "\n"
    "def symbolic_link(target):\n"
    "    path = tempfile.mkdtemp(dir=folder) + '/link'\n"
    "    os.symlink(target, path)\n"
    "    os.execv(path, ['env', '--version'])\n"
    "\n"
    "def descriptor(path):\n"
    "    fd = os.open(path, os.O_RDONLY)\n"
    "    os.set_inheritable(fd, True)\n"
    "    return fd\n"
    "\n"
    "attempt('a hard link', hard_link, EACCES)\n"
    "attempt('a symbolic link', lambda: symbolic_link('/usr/bin/env'), ENOENT, EACCES)\n"
    "attempt('/proc/self/fd', lambda: os.execv(f'/proc/self/fd/{descriptor(copy(PYTHON))}', EMPTY), EACCES)\n"
    "attempt('execveat', lambda: os.execve(descriptor(copy(PYTHON)), EMPTY, os.environ), EACCES)\n"
    "attempt('execveat of a library', lambda: os.execve(descriptor(mapped('libc.so')), ['libc'], {}), EACCES)\n";

const struct attack attack_linked_program = {
    .name = "linked-program",
    .tries = "programs by a hard link or an open descriptor",
    .group = ATTACK_PROGRAMS,
    .control = CONTROL_WITHOUT,
    .script = script,
    .options = {"--only", "python3"},
};
