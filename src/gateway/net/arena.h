/*
 * arena: memory that lives as long as one request, with a cap.
 *
 * Owned by a request; everything taken from it ends with arena_release(). One block is taken at first and more as
 * needed; beyond the cap, or without memory, the answer is NULL.
 */
#pragma once

#include <stddef.h>

struct arena_block;

struct arena {
    struct arena_block *blocks; /* the newest first */
    size_t used;                /* of all blocks together, headers included */
    size_t cap;
};

static inline struct arena arena_init(size_t cap)
{
    return (struct arena){.cap = cap};
}

void arena_release(struct arena *arena);

/* Aligned for anything; not cleared. NULL over the cap or without memory. */
void *arena_alloc(struct arena *arena, size_t size);

/* A copy with a NUL behind it. */
char *arena_copy(struct arena *arena, const char *text, size_t length);
char *arena_printf(struct arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
