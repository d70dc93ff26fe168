/*
 * id: names nobody can guess: a prefix that says what it names, then base32.
 *
 * Used by the gateway and the tests. 26 characters are 130 random bits of the kernel's, so two never meet and one that
 * was not told is not found.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

enum id_kind {
    ID_SANDBOX,  /* sb_ */
    ID_EXEC,     /* ex_ */
    ID_SNAPSHOT, /* snap_ */
    ID_TEMPLATE, /* tmpl_ */
    ID_KEY,      /* key_ */
    ID_KINDS,
};

enum { ID_RANDOM_LENGTH = 26, ID_SIZE = 32 };

struct id {
    char text[ID_SIZE];
};

/* -errno of getrandom. */
_must_use_ int id_make(enum id_kind kind, struct id *ret_id);

/* Could this be an id of that kind? NULL is none. */
bool id_is(enum id_kind kind, const char *text);

/* `length` random characters a-z2-7 and a NUL: 5 bits each. At most 256. -errno. */
_must_use_ int id_random_text(char *text, size_t length);
