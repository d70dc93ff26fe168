/*
 * tries: what an attempt said, line by line, and what follows from it. Pure.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

enum { TRIES_MAX = 128, TRY_WHAT_SIZE = 96, TRY_DETAIL_SIZE = 200 };

enum try_verdict { TRY_REFUSED, TRY_THROUGH, TRY_ABSENT };

struct
try {
    enum try_verdict verdict;
    char what[TRY_WHAT_SIZE];
    char detail[TRY_DETAIL_SIZE];
};

struct tries {
    struct try list[TRIES_MAX];
    size_t count;
    bool done; /* it said that it came to its end */
};

/* -EBADMSG for a line that no attempt writes, -ENOBUFS for more than TRIES_MAX of them. */
_must_use_ int tries_parse(const char *text, size_t length, struct tries *ret_tries);

/*
 * What was refused here and there alike is no refusal of the sandbox's: it becomes absent. What the control did not
 * try stays as it is.
 */
void tries_compare(struct tries *tries, const struct tries *control);

/* The first of this kind, or NULL. */
const struct try *tries_first(const struct tries *tries, enum try_verdict verdict);
