#include "gateway/net/arena.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 4096 }; /* header included; a larger wish gets a block of its own */

struct arena_block {
    struct arena_block *next;
    size_t length;
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
}

static struct arena_block *add_block(struct arena *arena, size_t size)
{
    size_t whole = size + sizeof(struct arena_block);

    if (whole < BLOCK_BYTES)
        whole = BLOCK_BYTES;
    if (whole > arena->cap - arena->used)
        whole = arena->cap - arena->used;
    if (whole < sizeof(struct arena_block) || whole - sizeof(struct arena_block) < size)
        return NULL;
    struct arena_block *block = malloc(whole);
    if (block == NULL)
        return NULL;
    *block = (struct arena_block){.next = arena->blocks, .room = whole - sizeof *block};
    arena->blocks = block;
    arena->used += whole;
    return block;
}

void *arena_alloc(struct arena *arena, size_t size)
{
    const size_t align = alignof(max_align_t);

    if (size > arena->cap)
        return NULL;
    size = size == 0 ? align : (size + align - 1) / align * align;
    struct arena_block *block = arena->blocks;
    if (block == NULL || block->room - block->length < size)
        block = add_block(arena, size);
    if (block == NULL)
        return NULL;
    void *memory = block->data + block->length;
    block->length += size;
    return memory;
}

char *arena_copy(struct arena *arena, const char *text, size_t length)
{
    char *copy = length < SIZE_MAX ? arena_alloc(arena, length + 1) : NULL;

    if (copy == NULL)
        return NULL;
    if (length > 0)
        memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
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
