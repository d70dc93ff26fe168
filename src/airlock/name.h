/*
 * name: names of hosts in one form, so that two that mean the same compare equal. Pure.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NAME_MAX_BYTES = 253, NAME_SIZE = 254, NAME_LABEL_MAX = 63 };

/*
 * In lower case, without the dot at its end. Letters, digits, dashes and underscores; others are written in their ASCII
 * form (xn--...). What ends in a number is an address in some reading, and no name. -EINVAL, and `*ret_why` says why.
 */
_must_use_ int name_normalize(const char *text, size_t length, char ret_name[NAME_SIZE], const char **ret_why);

/* HOST[:PORT] or [ADDRESS]:PORT, taken apart; port 0 when there is none. -EINVAL. Nothing is normalized. */
_must_use_ int name_split(const char *text, size_t length, size_t *ret_start, size_t *ret_length, uint16_t *ret_port);

/* Is `name` below `suffix`? Not when they are the same. Both normalized. */
bool name_is_below(const char *name, const char *suffix);
