/*
 * script-as-program: the kernel executes a script's interpreter, by a path that the script's author chose.
 */
#include "attack/attack.h"

static const char script[] =
    "def script(first):\n"
    "    path = tempfile.mkdtemp(dir=folder) + '/script'\n"
    "    with open(path, 'w') as file:\n"
    "        file.write(f'#!{first}\\n')\n"
    "    os.chmod(path, 0o755)\n"
    "    return path\n"
    "\n"
    "attempt('of a shell', lambda: os.execv(script('/bin/sh'), ['script']), ENOENT, EACCES)\n"
    "attempt('of a shell, by env', lambda: os.execv(script('/usr/bin/env sh'), ['script']), ENOENT, EACCES)\n"
    "attempt('of a copy', lambda: os.execv(script(copy(PYTHON) + ' -S'), ['script']), ENOENT, EACCES)\n"
    "attempt('of a script', lambda: os.execv(script(script('/bin/sh')), ['script']), ENOENT, EACCES)\n";

const struct attack attack_script_as_program = {
    .name = "script-as-program",
    .tries = "scripts of interpreters that are not listed",
    .group = ATTACK_PROGRAMS,
    .control = CONTROL_WITHOUT,
    .script = script,
    .options = {"--only", "python3"},
};
