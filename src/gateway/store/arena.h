/*
 * arena: memory of one call, given back all at once, with a cap.
 *
 * What does not fit makes it `full`, and stays so: a sequence of copies is checked once, at its end.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct arena_block;

struct arena {
    struct arena_block *blocks;
    size_t used;
    size_t cap;
    bool full; /* over the cap, or no memory */
};

static inline struct arena arena_init(size_t cap)
{
    return (struct arena){.cap = cap};
}

void arena_release(struct arena *arena);

/* Zeroed and aligned for anything. NULL once the arena is full. */
void *arena_take(struct arena *arena, size_t length);

/* NULL stays NULL. */
const void *arena_copy(struct arena *arena, const void *data, size_t length);
const char *arena_copy_text(struct arena *arena, const char *text);
