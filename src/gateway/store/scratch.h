/*
 * scratch: memory of one call, given back all at once, with a cap.
 *
 * What does not fit makes it `full`, and stays so: a sequence of copies is checked once, at its end.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct scratch_block;

struct scratch {
    struct scratch_block *blocks;
    size_t used;
    size_t cap;
    bool full; /* over the cap, or no memory */
};

static inline struct scratch scratch_init(size_t cap)
{
    return (struct scratch){.cap = cap};
}

void scratch_release(struct scratch *scratch);

/* Zeroed and aligned for anything. NULL once the scratch is full. */
void *scratch_take(struct scratch *scratch, size_t length);

/* NULL stays NULL. */
const void *scratch_copy(struct scratch *scratch, const void *data, size_t length);
const char *scratch_copy_text(struct scratch *scratch, const char *text);
