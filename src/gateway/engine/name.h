/*
 * name: ids that nobody can guess: a prefix and 26 characters of base32, 130 bits.
 */
#pragma once

#include "gateway/engine/engine.h"

/* `prefix` such as "sb". 0 or -errno. */
_must_use_ int name_make(const char *prefix, char ret_name[ENGINE_ID_SIZE]);
