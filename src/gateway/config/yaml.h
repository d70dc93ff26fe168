/*
 * yaml: a YAML document as a plain tree, or why it is none. The only part that knows libfyaml.
 *
 * What a configuration has no use for is refused: anchors and aliases, tags, a second document, keys that are there
 * twice or are no plain texts, nesting, bytes that are not UTF-8, more than a person would write.
 */
#pragma once

#include "gateway/config/memory.h"

#include "base/error.h"

#include <stdbool.h>

enum yaml_kind { YAML_TEXT, YAML_LIST, YAML_MAP };

struct yaml_node {
    enum yaml_kind kind;
    unsigned line; /* from 1 */
    unsigned column;
    const char *key;  /* in a map */
    const char *text; /* of a text */
    bool is_empty;    /* a text that is not there at all: `key:` */
    size_t count;
    struct yaml_node *children;
};

/* Where it is wrong, and what. */
struct yaml_fault {
    unsigned line;
    unsigned column;
    struct error error;
};

/* The root, NULL when there is nothing in it. 0, -EINVAL with a fault, or -ENOMEM. The tree lives in `memory`. */
_must_use_ int yaml_parse(const char *text, size_t length, struct config_memory *memory, struct yaml_node **ret_root,
                          struct yaml_fault *fault);
