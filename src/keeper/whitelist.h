/*
 * whitelist: from the names in a request to the files below /usr that may be executed.
 *
 * AS ROOT, in a helper. Names were checked by request.c; they are looked up on the host, and what they lead to is
 * opened below the given /usr without following a symlink.
 */
#pragma once

#include "base/buf.h"
#include "wire/wire.h"

enum { WHITELIST_BYTES_MAX = 16384 };

/*
 * Append the real path, relative to /usr and ending in NUL, of each program and of the loaders they need, once each. A
 * script needs its interpreter among the names: whoever lists it should know that it then runs any script.
 */
_must_use_ int whitelist_resolve(int usr_fd, struct wire_strv names, struct buf *programs, struct error *err);

/* Whether a list of such strings has this one. */
bool whitelist_has(const struct buf *programs, const char *path);
