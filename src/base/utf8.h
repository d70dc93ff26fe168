/*
 * utf8: sequences as Unicode defines them: no overlong forms, no surrogates, nothing above U+10FFFF.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The length (1 to 4) of the valid sequence at `text`, or 0 when there is none within `length` bytes. */
size_t utf8_sequence(const uint8_t *text, size_t length);

/* The longest prefix of `text` that does not end inside a sequence: where a cap may cut. */
size_t utf8_cut(const uint8_t *text, size_t length);
