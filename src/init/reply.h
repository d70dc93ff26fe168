/*
 * reply: the records and bytes a worker answers with, gathered and written to its standard output.
 *
 * INSIDE THE SANDBOX, in the worker's process alone. Functions return 0 or -errno; -EPIPE when nobody listens any more.
 */
#pragma once

#include "wire/wire.h"

#include <sys/stat.h>

_must_use_ int reply_record(const struct wire_message *record);
_must_use_ int reply_entry(const struct stat *st, const char *name, const char *target);
_must_use_ int reply_problem(int error, const char *path);

/* Write what was gathered. */
_must_use_ int reply_flush(void);
