/*
 * memory: all that one configuration consists of, freed at once.
 */
#pragma once

#include <stddef.h>

struct config_memory;

struct config_memory *config_memory_new(void);
void config_memory_free(struct config_memory *memory);

/* Zeroed; NULL when there is none left. */
void *config_memory_take(struct config_memory *memory, size_t size);
char *config_memory_text(struct config_memory *memory, const char *text, size_t length);
