/*
 * cleanup: things owned by a scope. A value leaves its scope only through TAKE_FD or TAKE_PTR.
 */
#pragma once

#include <stdlib.h>
#include <unistd.h>

static inline void cleanup_fd(const int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
}

static inline void cleanup_free(void *pointer)
{
    free(*(void **)pointer);
}

#define _cleanup_fd_ __attribute__((cleanup(cleanup_fd)))
#define _cleanup_free_ __attribute__((cleanup(cleanup_free)))

#define TAKE_FD(fd)                                                                                                    \
    ({                                                                                                                 \
        int taken_fd_ = (fd);                                                                                          \
        (fd) = -1;                                                                                                     \
        taken_fd_;                                                                                                     \
    })

#define TAKE_PTR(pointer)                                                                                              \
    ({                                                                                                                 \
        __typeof__(pointer) taken_pointer_ = (pointer);                                                                \
        (pointer) = NULL;                                                                                              \
        taken_pointer_;                                                                                                \
    })

/* Close and forget: safe on -1. */
static inline void close_fd(int *fd)
{
    cleanup_fd(fd);
    *fd = -1;
}
