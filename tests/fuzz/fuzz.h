/*
 * fuzz: what the harnesses share. Each harness is one LLVMFuzzerTestOneInput(), called by libFuzzer or by replay.c.
 */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What must hold whatever the input is. */
#define MUST(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            (void)fprintf(stderr, "%s:%d: must hold: %s\n", __FILE__, __LINE__, #condition);                           \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)
