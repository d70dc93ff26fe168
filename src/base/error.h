/*
 * error: what failed, in a fixed-size object that never allocates.
 *
 * Used by every process. Above base/, a fallible function returns 0 or a negative errno and takes
 * `struct error *err` last. The first failure is described with error_set(); callers on the way up add
 * context with error_wrap(), so that a person reads "creating sandbox: mounting /proc: Operation not permitted".
 */
#pragma once

#include <errno.h>

enum error_code {
    ERROR_NONE = 0,
    ERROR_INVALID,     /* the caller asked for something impossible */
    ERROR_NOT_FOUND,   /* a thing that was named does not exist */
    ERROR_DENIED,      /* the caller may not do this */
    ERROR_LIMIT,       /* a limit or a cap was reached */
    ERROR_UNSUPPORTED, /* this machine lacks something we need */
    ERROR_PROTOCOL,    /* a peer sent what its state does not permit */
    ERROR_SYSTEM,      /* a system call failed */
};

enum { ERROR_MESSAGE_MAX = 480 };

struct error {
    enum error_code code;
    int err; /* positive errno, 0 when none applies */
    char message[ERROR_MESSAGE_MAX];
};

#define _must_use_ __attribute__((warn_unused_result))

/* Around a call whose failure changes nothing, with the reason beside it. */
static inline void ignore_result(long result)
{
    (void)result;
}

/* Describe a failure. `err` is a positive errno (its text is appended) or 0. Returns -err, or -EINVAL for 0. */
int error_set(struct error *error, enum error_code code, int err, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* error_set() for a failed system call: takes errno as it is now. */
#define error_errno(error, ...) error_set((error), ERROR_SYSTEM, errno, __VA_ARGS__)

/* Put "context: " in front of the message that is there. */
void error_wrap(struct error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The lower-case name of a code, as it appears in JSON. */
const char *error_code_name(enum error_code code);
