/*
 * table: every attack there is, in the order in which they are made. Each is a file, GROUP/NAME.c, that defines
 * attack_NAME.
 */
#pragma once

#include "attack/attack.h"

#include <stddef.h>

extern const struct attack *const table_attacks[];
extern const size_t table_count;

/* NULL when there is none of that name. */
const struct attack *table_find(const char *name);
