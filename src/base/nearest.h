/*
 * nearest: which of the words there are was perhaps meant by one there is not. Pure.
 */
#pragma once

#include <stddef.h>

struct nearest {
    const char *word;
    const char *best; /* NULL: none is near */
    size_t distance;
};

struct nearest nearest_init(const char *word);
void nearest_offer(struct nearest *nearest, const char *candidate);
