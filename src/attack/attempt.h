/*
 * attempt: what an attack says about itself while it runs inside a sandbox, or outside for control.
 *
 * Each try is a line on standard output, so that what was tried before an attempt was killed is known. The referee
 * judges them (tries.h).
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>

struct attempt {
    unsigned count;
};

typedef void attempt_fn(struct attempt *attempt);

/* A system call that must fail, with one of these numbers and no other. */
#define TRY(attempt, what, call, ...)                                                                                  \
    attempt_call((attempt), (what), (errno = 0, (long)(call)), (const int[]){__VA_ARGS__, 0})

/* The same for a call that was made before. */
#define TRIED(attempt, what, result, error, ...)                                                                       \
    (errno = (error), attempt_call((attempt), (what), (long)(result), (const int[]){__VA_ARGS__, 0}))

void attempt_call(struct attempt *attempt, const char *what, long result, const int *refusals);

/* Anything else: whether it was refused, and what was seen where it was not. */
void attempt_say(struct attempt *attempt, const char *what, bool refused, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Of a clone: a child that we may get ends at once, and is waited for. */
long attempt_only_parent(long pid);

/* This machine has no such thing to attack. */
void attempt_absent(struct attempt *attempt, const char *what, const char *why);

/* The referee's canaries: FILE, PORT, PID, NAME, KEY. "" when there is none. */
const char *attempt_canary(const char *name);
long attempt_canary_number(const char *name);

/* Run one attempt; the last line says that it came to its end. */
int attempt_run(attempt_fn *inside);
