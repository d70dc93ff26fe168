/*
 * request: is a CREATE or LIMITS message one that a keeper may carry out? Pure: no I/O.
 *
 * AS ROOT. The sender is taken to be compromised: every field is checked here, once.
 */
#pragma once

#include "wire/wire.h"

_must_use_ int request_check_create(const struct wire_create *create, size_t fd_count, struct error *err);
_must_use_ int request_check_limits(const struct wire_limits *limits, struct error *err);

/* An absolute path without ".", ".." or empty parts, where a host folder may be attached. */
bool request_is_guest_path(const char *path);
