#include "gateway/config/memory.h"

#include <stdlib.h>
#include <string.h>

struct piece {
    struct piece *next;
    max_align_t data[];
};

struct config_memory {
    struct piece *pieces;
};

struct config_memory *config_memory_new(void)
{
    return calloc(1, sizeof(struct config_memory));
}

void config_memory_free(struct config_memory *memory)
{
    if (memory == NULL)
        return;
    while (memory->pieces != NULL) {
        struct piece *piece = memory->pieces;
        memory->pieces = piece->next;
        free(piece);
    }
    free(memory);
}

void *config_memory_take(struct config_memory *memory, size_t size)
{
    struct piece *piece = calloc(1, sizeof *piece + size);

    if (piece == NULL)
        return NULL;
    piece->next = memory->pieces;
    memory->pieces = piece;
    return piece->data;
}

char *config_memory_text(struct config_memory *memory, const char *text, size_t length)
{
    char *copy = config_memory_take(memory, length + 1);

    if (copy != NULL && length > 0)
        memcpy(copy, text, length);
    return copy;
}
