/*
 * filter: loading a seccomp filter that was compiled at build time (policy/seccomp/, tools/compile-filter.c).
 *
 * Used by the keeper's child for the whole sandbox and by init for each command.
 */
#pragma once

#include "base/error.h"

#include <linux/filter.h>
#include <stddef.h>

/* For the calling thread; `size` in bytes. 0 or -errno. */
_must_use_ int filter_load(const struct sock_filter *filter, size_t size);
