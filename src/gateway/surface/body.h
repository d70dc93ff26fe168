/*
 * body: JSON that a caller sent, taken strictly into a struct by a table of its fields. Pure.
 *
 * Used by the handlers of the surface. Everything that is not in the table, of another type or out of its bounds is an
 * error that names the field by its path; so are duplicate keys, bad UTF-8, numbers that no double holds, and more
 * values or depth than any body of ours has, which is seen before memory is spent on it. Texts are views of the parsed
 * value, which the caller keeps for as long.
 */
#pragma once

#include "base/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BODY_DEPTH_MAX = 32,
    BODY_VALUES_MAX = 65536,
};

enum body_kind {
    BODY_TEXT,   /* const char *, NULL when not given */
    BODY_NUMBER, /* struct body_number */
    BODY_MILLI,  /* struct body_number, in thousandths of what was written */
    BODY_SWITCH, /* struct body_switch */
    BODY_TEXTS,  /* const json_t *, an array of texts */
    BODY_MAP,    /* const json_t *, an object of texts */
    BODY_PART,   /* an object with fields of its own, whose offsets count from the same struct */
    BODY_VALUE,  /* const json_t *, whatever it is */
};

struct body_number {
    bool given;
    int64_t value;
};

struct body_switch {
    bool given;
    bool value;
};

struct body_fields;

struct body_field {
    const char *name;
    enum body_kind kind;
    size_t offset;
    bool required;
    int64_t least; /* of a number; bytes of a text; entries of the others */
    int64_t most;
    const char *choices; /* of a text: one|other; NULL: any */
    const struct body_fields *part;
};

struct body_fields {
    const struct body_field *items;
    size_t count;
};

#define BODY_FIELDS(array) ((struct body_fields){(array), sizeof(array) / sizeof *(array)})

/* Parse an object. No bytes at all are an empty one. ERROR_INVALID, or ERROR_LIMIT for too many values. */
_must_use_ int body_parse(const void *data, size_t length, json_t **ret_root, struct error *err);

/* Take the fields of `object`; `path` is what leads to it, "" at the top. `target` was zeroed. */
_must_use_ int body_take(const json_t *object, const char *path, const struct body_fields *fields, void *target,
                         struct error *err);

static inline void body_release(json_t **root)
{
    json_decref(*root);
}

#define _cleanup_body_ __attribute__((cleanup(body_release)))
