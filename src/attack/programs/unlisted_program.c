/*
 * unlisted-program: a listed interpreter executes what is not listed: by path, by search, by a shell, and a library
 * that is a program too, which no layer takes away: Landlock alone refuses it.
 */
#include "attack/attack.h"

static const char script[] = "attempt('execve', lambda: os.execv('/bin/sh', ['sh', '-c', 'exit 0']), ENOENT, EACCES)\n"
                             "attempt('in the PATH', lambda: os.execvp('env', ['env', '--version']), ENOENT, EACCES)\n"
                             "attempt('by another name of it', lambda: os.execv('/proc/self/root/usr/bin/env', ['env', "
                             "'--version']), ENOENT, EACCES)\n"
                             "attempt('by posix_spawn', lambda: os.waitpid(os.posix_spawn('/bin/sh', ['sh', '-c', ''], "
                             "{}), 0), ENOENT, EACCES)\n"
                             "attempt('a library', lambda: os.execv(mapped('libc.so'), ['libc']), EACCES)\n";

const struct attack attack_unlisted_program = {
    .name = "unlisted-program",
    .tries = "programs that are not listed, from one that is",
    .group = ATTACK_PROGRAMS,
    .control = CONTROL_WITHOUT,
    .script = script,
    .options = {"--only", "python3"},
};
