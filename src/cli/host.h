/*
 * host: paths of the caller's machine, which root opens for him. No symlink in them is followed: a folder that a
 * sandbox could write to before may hold some that lead elsewhere.
 */
#pragma once

#include "base/error.h"

#include <stdint.h>

/* `option` is named in the message. O_CLOEXEC is added to `flags`. */
_must_use_ int host_open(const char *path, const char *option, int flags, int *ret_fd, struct error *err);

/* Whose files they are: of whoever called sudo, else our own user. */
uint32_t host_owner_uid(void);
uint32_t host_owner_gid(void);
