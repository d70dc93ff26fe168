/*
 * words: the command's arguments and its environment, built from nothing plus what the caller names.
 */
#pragma once

#include "base/buf.h"
#include "cli/options.h"

/* All of them, each ending in NUL: arguments, then NAME=value. -ENOBUFS when they do not fit, -ENOMEM. */
_must_use_ int words_gather(const struct run_options *options, struct buf *strings, uint32_t *ret_argc,
                            uint32_t *ret_envc);
