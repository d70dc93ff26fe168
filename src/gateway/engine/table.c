#include "gateway/engine/table.h"

#include <stdlib.h>

enum { ROOM_FIRST = 64 };

int table_init(struct table *table)
{
    *table = (struct table){.buckets = calloc(ROOM_FIRST, sizeof(struct table_entry *)), .room = ROOM_FIRST};
    return table->buckets == NULL ? -ENOMEM : 0;
}

void table_release(struct table *table)
{
    free(table->buckets);
    *table = (struct table){0};
}

/* FNV-1a, 64 bits. */
uint64_t table_hash_text(const char *text)
{
    uint64_t hash = 14695981039346656037U;

    for (; *text != '\0'; text++)
        hash = (hash ^ (uint8_t)*text) * 1099511628211U;
    return hash;
}

/* The finalizer of splitmix64: counted numbers spread over all bits. */
uint64_t table_hash_number(uint64_t number)
{
    number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9U;
    number = (number ^ (number >> 27)) * 0x94d049bb133111ebU;
    return number ^ (number >> 31);
}

static struct table_entry **bucket_of(const struct table *table, uint64_t hash)
{
    return &table->buckets[hash & (table->room - 1)];
}

static void link_entry(struct table *table, struct table_entry *entry)
{
    struct table_entry **bucket = bucket_of(table, entry->hash);

    entry->next = *bucket;
    *bucket = entry;
}

static void grow(struct table *table)
{
    struct table larger = {.buckets = calloc(table->room * 2, sizeof(struct table_entry *)),
                           .room = table->room * 2,
                           .count = table->count};

    if (larger.buckets == NULL)
        return;
    for (size_t i = 0; i < table->room; i++) {
        struct table_entry *next;
        for (struct table_entry *entry = table->buckets[i]; entry != NULL; entry = next) {
            next = entry->next;
            link_entry(&larger, entry);
        }
    }
    free(table->buckets);
    *table = larger;
}

void table_add(struct table *table, struct table_entry *entry, uint64_t hash)
{
    if (table->count >= table->room)
        grow(table);
    entry->hash = hash;
    link_entry(table, entry);
    table->count++;
}

void table_remove(struct table *table, struct table_entry *entry)
{
    struct table_entry **at = bucket_of(table, entry->hash);

    while (*at != NULL && *at != entry)
        at = &(*at)->next;
    if (*at == NULL)
        return;
    *at = entry->next;
    table->count--;
}

struct table_entry *table_next(const struct table *table, uint64_t hash, const struct table_entry *current)
{
    struct table_entry *entry = current == NULL ? *bucket_of(table, hash) : current->next;

    while (entry != NULL && entry->hash != hash)
        entry = entry->next;
    return entry;
}
