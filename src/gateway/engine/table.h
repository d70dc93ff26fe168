/*
 * table: a hash table of things that have an entry in them. Owns its buckets, not the things. Keys are ours (random ids
 * and counted numbers), so nobody can choose them to collide.
 */
#pragma once

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

struct table_entry {
    struct table_entry *next;
    uint64_t hash;
};

struct table {
    struct table_entry **buckets;
    size_t room; /* a power of two */
    size_t count;
};

#define TABLE_OWNER(type, member, entry) ((type *)(void *)((char *)(entry)-offsetof(type, member)))

_must_use_ int table_init(struct table *table);
void table_release(struct table *table);

uint64_t table_hash_text(const char *text);
uint64_t table_hash_number(uint64_t number);

/* Never fails: without memory for more buckets it gets slower. */
void table_add(struct table *table, struct table_entry *entry, uint64_t hash);
void table_remove(struct table *table, struct table_entry *entry);

/* All entries with this hash: start with NULL; NULL at the end. */
struct table_entry *table_next(const struct table *table, uint64_t hash, const struct table_entry *current);
