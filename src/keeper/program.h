/*
 * program: what kind of file one below /usr is: a program, a script, a library or none of them.
 *
 * AS ROOT, in a helper, on files of the host's own. A parser all the same: fuzzed, no allocation, every offset checked.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>

enum program_kind {
    PROGRAM_NONE,   /* data */
    PROGRAM_BINARY, /* an ELF file that can be started, by the kernel or by a loader */
    PROGRAM_SCRIPT, /* starts with #! */
    PROGRAM_OTHER,  /* may be executed, but is nothing that is known */
    PROGRAM_LIBRARY,
};

enum { PROGRAM_PATH_SIZE = 256 };

struct program {
    enum program_kind kind;
    bool writes_code;                    /* a binary that has the kernel give it memory both writable and executable */
    char interpreter[PROGRAM_PATH_SIZE]; /* a binary's loader, a script's interpreter; "" when it has none */
    char argument[PROGRAM_PATH_SIZE];    /* a script's first word behind its interpreter, or "" */
};

/* `executable`: it has an execute bit. What can't be made sense of is PROGRAM_OTHER then, else PROGRAM_NONE. 0 or
 * -errno of reading it. */
_must_use_ int program_examine(int fd, bool executable, struct program *ret_program);
