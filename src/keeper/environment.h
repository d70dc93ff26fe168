/*
 * environment: what of the daemon's environment its programs get: the HUTCH_* variables, but for credentials, which go
 * through a descriptor, because /proc shows every process's environment.
 *
 * AS ROOT.
 */
#pragma once

#include "base/error.h"

#include <stddef.h>

enum { ENVIRONMENT_MAX = 128 };

struct environment {
    char *variables[ENVIRONMENT_MAX + 4]; /* ends in NULL */
    size_t count;
};

/* `listen`, unless it is NULL, goes before HUTCH_SERVER_LISTEN. Strings stay those of `from` and `listen`. */
_must_use_ int environment_init(struct environment *environment, char *const *from, char *listen, struct error *err);

enum { ENVIRONMENT_KEY_BYTES = 32 };

/*
 * What no gateway may lose and nobody else may know, in a sealed file: HUTCH_ADMIN_PASSWORD and HUTCH_API_KEY, each
 * ending in NUL and perhaps empty, and a key made by lot, with which gateways seal what they write down. The variables
 * are in our own memory no more: to be called before anything is forked, and once.
 */
_must_use_ int environment_take_presets(int *ret_fd, struct error *err);

/* A gateway has recorded the credentials' hashes: from now on the file holds the key alone. */
_must_use_ int environment_drop_presets(int *fd, struct error *err);
