/*
 * target: what a request line asks for, taken apart once, so that nobody decodes again and nobody decodes differently.
 *
 * Pure; the strings live in the arena. Percent escapes of the path are decoded once. Refused are: broken escapes, an
 * encoded NUL, an encoded slash (it would be a separator to one reader and a letter to another), the segments `.` and
 * `..` however they are written, and a fragment. Empty segments stay as they are. Bytes that are not UTF-8 are allowed:
 * names of files may have them.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"

#include <stddef.h>

enum { TARGET_PARAMETERS_MAX = 64 };

struct query_parameter {
    const char *name; /* both decoded, `+` is a blank; without `=` the value is empty */
    const char *value;
};

struct target {
    const char *path; /* decoded, starts with `/`; or "*", which only OPTIONS may ask for */
    size_t path_length;
    const char *authority; /* of the absolute form, else NULL */
    struct query_parameter *query;
    size_t query_count;
};

/* 0; -EINVAL for what is refused; -E2BIG for too many parameters; -ENOMEM when the arena is full. */
_must_use_ int target_parse(const char *raw, size_t length, struct arena *arena, struct target *ret_target);

/* The first parameter of this name, or NULL. */
const char *target_query(const struct target *target, const char *name);
