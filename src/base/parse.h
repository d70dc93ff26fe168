/*
 * parse: numbers, sizes and durations as people write them. Pure: takes a string, gives a value or -EINVAL/-ERANGE.
 */
#pragma once

#include "base/error.h"

#include <stdint.h>

/* A whole decimal number, nothing around it. */
_must_use_ int parse_u64(const char *text, uint64_t *ret_number);

/* Bytes: a whole number and one of B, K, M, G, T (powers of 1024, also KiB, MB and the like); no letter: bytes. */
_must_use_ int parse_size(const char *text, uint64_t *ret_bytes);

/* A duration: a decimal number and ms, s, m or h; no letter: seconds. At least 1 ms. */
_must_use_ int parse_duration_ms(const char *text, uint64_t *ret_ms);

/* CPUs, such as 0.5 or 2, in thousandths. */
_must_use_ int parse_cpus_milli(const char *text, uint64_t *ret_milli);
