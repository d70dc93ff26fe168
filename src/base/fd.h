/*
 * fd: whole reads and writes, small files, and messages that carry file descriptors.
 *
 * Used by every process. Functions return a count or 0, or a negative errno; they never log. Every descriptor
 * they make or receive is close-on-exec.
 */
#pragma once

#include "base/error.h"

#include <stddef.h>
#include <sys/types.h>

enum { FD_PASS_MAX = 40 }; /* descriptors in one message */

/* Write all of it; a short write goes on. 0 or -errno. */
_must_use_ int fd_write_all(int fd, const void *data, size_t length);

/* Read until the end or until `size` bytes. The count or -errno. */
_must_use_ ssize_t fd_read_all(int fd, void *data, size_t size);

/* Write a small string to an existing file below `dir` in one write, as kernel interfaces want it. 0 or -errno. */
_must_use_ int fd_write_file(int dir, const char *path, const char *text);

/* The same with a number. */
_must_use_ int fd_write_number(int dir, const char *path, unsigned long long number);

/* Read a small file below `dir` into a string. The length or -errno (-EFBIG when it does not fit). */
_must_use_ ssize_t fd_read_file(int dir, const char *path, char *text, size_t size);

/* Send one packet with descriptors. 0 or -errno; -EAGAIN when the peer's buffer is full. */
_must_use_ int fd_send(int socket, const void *data, size_t length, const int *fds, size_t fd_count);

/*
 * Receive one packet. At most `fd_max` descriptors are accepted; a packet that was cut, or that carries more, is
 * -EMSGSIZE and all its descriptors are closed. Returns the length, 0 at the end of the connection, or -errno.
 */
_must_use_ ssize_t fd_receive(int socket, void *data, size_t size, int *fds, size_t fd_max, size_t *ret_fd_count);

/* Close `count` descriptors and set them to -1. */
void fd_close_many(int *fds, size_t count);

/* The descriptors 0 to 2 may be closed; what is opened later must not get their numbers. 0 or -errno. */
_must_use_ int fd_occupy_standard(void);
