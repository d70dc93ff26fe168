/*
 * listener: sockets that the gateway accepts connections on, opened by root because ports below 1024 need it.
 *
 * AS ROOT. Addresses are numbers: nothing is looked up here.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <sys/types.h>

enum { LISTENER_NAME_SIZE = 64, LISTENER_PATH_SIZE = 108 };

/* 127.0.0.1:8080 or [::1]:8080. */
_must_use_ int listener_open(const char *address, int *ret_fd, struct error *err);

/* A socket file that root and this group may use. One that nobody listens on any more is replaced. */
_must_use_ int listener_open_unix(const char *path, gid_t group, int *ret_fd, struct error *err);

/* Where it really listens: port 0 is any that was free. */
void listener_describe(int fd, char *text, size_t size);

/*
 * Whether it is as it was opened, at `address` as listener_describe() said it: it listens there, and nothing was set on
 * it that a new one has not. A gateway has the same socket, and may have shut it down, filtered or tied it.
 */
bool listener_is_sound(int fd, const char *address);
