/*
 * state: the folder that a keeper keeps its layers and images in.
 *
 * AS ROOT. It is root's alone. Many keepers may share it; of daemons only one may, whose gateway has a part of it.
 */
#pragma once

#include "base/error.h"

#include <sys/types.h>

/* Open it, making it when it is missing. */
_must_use_ int state_open(const char *path, int *ret_fd, struct error *err);

/* Hold it as its daemon, until the descriptor is closed. */
_must_use_ int state_lock(int state_fd, const char *path, int *ret_lock_fd, struct error *err);

/* The gateway's own part, made when it is missing, and its user's alone. */
_must_use_ int state_open_gateway(int state_fd, uid_t uid, gid_t gid, int *ret_fd, struct error *err);
