/*
 * arena: memory of one request or call, given back all at once, with a cap.
 *
 * What does not fit, or finds no memory, makes the arena `full`, and it stays so: a sequence of copies is checked once,
 * at its end.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct arena_block;

struct arena {
    struct arena_block *blocks; /* the newest first */
    size_t used;
    size_t cap;
    bool full;
};

static inline struct arena arena_init(size_t cap)
{
    return (struct arena){.cap = cap};
}

void arena_release(struct arena *arena);

/* Zeroed and aligned for anything. NULL once the arena is full, here and below. */
void *arena_alloc(struct arena *arena, size_t size);

/* A copy with a NUL behind it. NULL stays NULL. */
char *arena_copy(struct arena *arena, const void *data, size_t length);
char *arena_copy_text(struct arena *arena, const char *text);
char *arena_printf(struct arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
