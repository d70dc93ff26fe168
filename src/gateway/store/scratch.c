#include "gateway/store/scratch.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 4000 };

struct scratch_block {
    struct scratch_block *next;
    size_t used;
    size_t room;
    alignas(max_align_t) unsigned char data[];
};

void scratch_release(struct scratch *scratch)
{
    while (scratch->blocks != NULL) {
        struct scratch_block *next = scratch->blocks->next;
        free(scratch->blocks);
        scratch->blocks = next;
    }
    scratch->used = 0;
}

static struct scratch_block *grow(struct scratch *scratch, size_t length)
{
    size_t room = length > BLOCK_BYTES ? length : BLOCK_BYTES;
    struct scratch_block *block = malloc(sizeof *block + room);

    if (block == NULL)
        return NULL;
    block->next = scratch->blocks;
    block->used = 0;
    block->room = room;
    scratch->blocks = block;
    return block;
}

void *scratch_take(struct scratch *scratch, size_t length)
{
    const size_t unit = alignof(max_align_t);
    size_t whole = length <= scratch->cap ? (length + unit - 1) / unit * unit : length;
    struct scratch_block *block = scratch->blocks;

    if (scratch->full || scratch->used > scratch->cap || whole > scratch->cap - scratch->used) {
        scratch->full = true;
        return NULL;
    }
    if (block == NULL || whole > block->room - block->used)
        block = grow(scratch, whole);
    if (block == NULL) {
        scratch->full = true;
        return NULL;
    }
    void *taken = block->data + block->used;
    block->used += whole;
    scratch->used += whole;
    return memset(taken, 0, length);
}

const void *scratch_copy(struct scratch *scratch, const void *data, size_t length)
{
    void *copy = data != NULL ? scratch_take(scratch, length) : NULL;

    return copy != NULL ? memcpy(copy, data, length) : NULL;
}

const char *scratch_copy_text(struct scratch *scratch, const char *text)
{
    return text != NULL ? scratch_copy(scratch, text, strlen(text) + 1) : NULL;
}
