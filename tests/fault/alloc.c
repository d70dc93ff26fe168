/*
 * alloc: malloc, calloc and realloc of the fault build (linked with --wrap, libc's own uses included): each asks with a
 * system call whether it may succeed.
 */
#include "fault.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);

static bool must_fail(void)
{
    int error = errno;
    bool fails = syscall(FAULT_CALL) < 0 && errno == ENOMEM;

    if (!fails)
        errno = error;
    return fails;
}

void *__wrap_malloc(size_t size)
{
    return must_fail() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return must_fail() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return must_fail() ? NULL : __real_realloc(old, size);
}
