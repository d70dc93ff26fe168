/*
 * exec_words: the arguments and the environment of an exec as one EXEC message wants them. Pure.
 */
#pragma once

#include "base/buf.h"
#include "gateway/engine/exec.h"

/*
 * argc arguments, then envc NAME=value pairs: the defaults, the sandbox's, the exec's, of which the later wins.
 * ERROR_INVALID for no command or a variable without a name, ERROR_LIMIT for too much.
 */
_must_use_ int exec_words(const struct exec_settings *settings, const char *const *sandbox_env, struct buf *strings,
                          uint32_t *ret_argc, uint32_t *ret_envc, struct error *err);
