/*
 * keys: the table of everything that can be configured. Pure data, and how to find one's way in it.
 *
 * A path names sections and a key; `*` in it stands for a name that the administrator chose. Offsets count from struct
 * config, in rows with `*` from that entry's struct.
 */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum config_type {
    /* one value */
    CONFIG_NUMBER,
    CONFIG_CPUS, /* thousandths */
    CONFIG_SWITCH,
    CONFIG_CHOICE,     /* its place among the choices */
    CONFIG_NAME,       /* of a template */
    CONFIG_PATH,       /* absolute, or empty */
    CONFIG_FOLDER,     /* absolute */
    CONFIG_TEMPLATE,   /* a folder or `host` */
    CONFIG_SOCKET,     /* a path, `auto` or `off` */
    CONFIG_FILE_BELOW, /* relative */
    /* lists */
    CONFIG_ADDRESSES,
    CONFIG_HOSTS,
    CONFIG_ORIGINS,
    CONFIG_PATTERNS,
    CONFIG_CHOICES, /* some of the choices, by name */
    /* names with values */
    CONFIG_TEXTS,
};

struct config_key {
    const char *path;
    enum config_type type;
    size_t offset;
    const char *otherwise; /* the default, as in the environment: list entries by lines; NULL in a row with `*` */
    uint64_t least;        /* of a number, or of a list's entries */
    uint64_t most;
    const char *choices; /* one|other */
    const char *help;    /* one line */
};

/* Sections of entries that the administrator names. */
struct config_group {
    const char *path;
    const char *help;
    size_t items_offset; /* in struct config */
    size_t count_offset;
    size_t size;
    size_t most;
    const char *otherwise; /* YAML, with the indentation of an entry; "" for none */
};

extern const struct config_key config_keys[];
extern const size_t config_key_count;
extern const struct config_group config_groups[];
extern const size_t config_group_count;

/* The row of this path, `*` matching any one part; NULL when there is none. */
const struct config_key *config_key_find(const char *path);

/* Some row lies below this path. */
bool config_key_is_section(const char *path);

/* The group whose entries are named right below this path, or NULL. */
const struct config_group *config_group_find(const char *path);

static inline bool config_key_is_list(const struct config_key *key)
{
    return key->type >= CONFIG_ADDRESSES && key->type <= CONFIG_CHOICES;
}

/* Of an entry that the administrator names: only the file has those. */
bool config_key_is_in_group(const struct config_key *key);

/* What a value must be, in words. */
_must_use_ int config_key_describe(const struct config_key *key, struct buf *text);

/* HUTCH_SECTION_KEY. */
_must_use_ int config_key_variable(const struct config_key *key, struct buf *text);

/* The parts of a path behind `path` (with its dot), of which any row has one: the words a wrong one may have meant. */
void config_key_offer(const char *path, void (*offer)(void *context, const char *part), void *context);
