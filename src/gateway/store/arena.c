#include "gateway/store/arena.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 4000 };

struct arena_block {
    struct arena_block *next;
    size_t used;
    size_t room;
    alignas(max_align_t) unsigned char data[];
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

static struct arena_block *grow(struct arena *arena, size_t length)
{
    size_t room = length > BLOCK_BYTES ? length : BLOCK_BYTES;
    struct arena_block *block = malloc(sizeof *block + room);

    if (block == NULL)
        return NULL;
    block->next = arena->blocks;
    block->used = 0;
    block->room = room;
    arena->blocks = block;
    return block;
}

void *arena_take(struct arena *arena, size_t length)
{
    const size_t unit = alignof(max_align_t);
    size_t whole = length <= arena->cap ? (length + unit - 1) / unit * unit : length;
    struct arena_block *block = arena->blocks;

    if (arena->full || arena->used > arena->cap || whole > arena->cap - arena->used) {
        arena->full = true;
        return NULL;
    }
    if (block == NULL || whole > block->room - block->used)
        block = grow(arena, whole);
    if (block == NULL) {
        arena->full = true;
        return NULL;
    }
    void *taken = block->data + block->used;
    block->used += whole;
    arena->used += whole;
    return memset(taken, 0, length);
}

const void *arena_copy(struct arena *arena, const void *data, size_t length)
{
    void *copy = data != NULL ? arena_take(arena, length) : NULL;

    return copy != NULL ? memcpy(copy, data, length) : NULL;
}

const char *arena_copy_text(struct arena *arena, const char *text)
{
    return text != NULL ? arena_copy(arena, text, strlen(text) + 1) : NULL;
}
