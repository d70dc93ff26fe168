/*
 * rights: programs that would give more rights to whoever runs them, tried by attacks that make or find one.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>

/* This program, at another path inside. 0 or -errno. */
_must_use_ int rights_copy_program(const char *to);

/* Executed by somebody without any rights, does it have some? True also when it did not run: nothing is known then. */
bool rights_are_gained(const char *path);

/* What that program does: 1 when it has more rights than who started it. */
int rights_tell(void);
