#include "base/arena.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 4000 }; /* a larger wish gets a block of its own */

struct arena_block {
    struct arena_block *next;
    size_t used;
    size_t room;
    alignas(max_align_t) uint8_t data[];
};

void arena_release(struct arena *arena)
{
    while (arena->blocks != NULL) {
        struct arena_block *next = arena->blocks->next;
        free(arena->blocks);
        arena->blocks = next;
    }
    arena->used = 0;
    arena->full = false;
}

static struct arena_block *add_block(struct arena *arena, size_t size)
{
    size_t room = size > BLOCK_BYTES ? size : BLOCK_BYTES;
    struct arena_block *block = malloc(sizeof *block + room);

    if (block == NULL)
        return NULL;
    *block = (struct arena_block){.next = arena->blocks, .room = room};
    arena->blocks = block;
    return block;
}

void *arena_alloc(struct arena *arena, size_t size)
{
    const size_t unit = alignof(max_align_t);
    size_t left = arena->cap - arena->used;
    size_t whole = size == 0 ? unit : size <= left ? (size + unit - 1) / unit * unit : size;
    struct arena_block *block = arena->blocks;

    arena->full = arena->full || whole > left;
    if (!arena->full && (block == NULL || whole > block->room - block->used)) {
        block = add_block(arena, whole);
        arena->full = block == NULL;
    }
    if (arena->full)
        return NULL;
    void *taken = block->data + block->used;
    block->used += whole;
    arena->used += whole;
    return memset(taken, 0, whole);
}

char *arena_copy(struct arena *arena, const void *data, size_t length)
{
    char *copy = data != NULL && length < SIZE_MAX ? arena_alloc(arena, length + 1) : NULL;

    return copy != NULL ? memcpy(copy, data, length) : NULL;
}

char *arena_copy_text(struct arena *arena, const char *text)
{
    return text != NULL ? arena_copy(arena, text, strlen(text)) : NULL;
}

char *arena_printf(struct arena *arena, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *text = length >= 0 ? arena_alloc(arena, (size_t)length + 1) : NULL;
    if (text == NULL)
        return NULL;
    va_start(args, format);
    (void)vsnprintf(text, (size_t)length + 1, format, args);
    va_end(args);
    return text;
}
