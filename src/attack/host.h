/*
 * host: the state of this machine that no attack may change, as a text, one fact per line.
 */
#pragma once

#include "base/buf.h"

/* Settings of the kernel, the host's name, its clock, mounts of ours, and these files. */
_must_use_ int host_describe(const char *const *files, size_t file_count, struct buf *text);

/* The first line of `now` that is not in `before`, or NULL. Both end in NUL. */
const char *host_difference(const char *before, const char *now, char *ret_line, size_t size);
