/*
 * Theory of operation. Entries lie in an array and are found by name and by number through two open-addressing tables
 * of indices, which are at most half full. Removal from such a table moves later entries of the chain up, so that no
 * tombstones gather, however long a sandbox lives.
 */
#include "airlock/names.h"

#include <stdlib.h>
#include <string.h>

#define NOTHING UINT32_MAX
#define SECOND UINT64_C(1000000000)

struct entry {
    uint32_t number;
    uint32_t holders;
    bool has_failed; /* it has no addresses: nobody was told of its number */
    uint64_t used_ns;
    uint64_t pinned_until_ns;
    size_t pin_count;
    struct address pins[NAMES_PINS_MAX];
    char name[NAME_SIZE];
};

struct names {
    size_t count;
    size_t most;
    uint32_t *by_name;
    uint32_t *by_number;
    uint32_t mask;
    uint32_t next; /* number to be given out */
    struct entry entries[];
};

static uint32_t hash_name(const char *name)
{
    uint32_t hash = 2166136261U;

    for (; *name != '\0'; name++)
        hash = (hash ^ (uint8_t)*name) * 16777619U;
    return hash;
}

static uint32_t hash_number(uint32_t number)
{
    return number * 2654435761U;
}

int names_new(size_t most, uint32_t start, struct names **ret_names, struct error *err)
{
    struct names *names = calloc(1, sizeof *names + most * sizeof(struct entry));
    size_t slots = 16;

    while (slots < most * 2)
        slots *= 2;
    if (names != NULL) {
        names->most = most;
        names->mask = (uint32_t)slots - 1;
        names->next = NAMES_FIRST + start % (NAMES_ADDRESSES - NAMES_FIRST);
        names->by_name = malloc(slots * sizeof *names->by_name);
        names->by_number = malloc(slots * sizeof *names->by_number);
    }
    if (names == NULL || names->by_name == NULL || names->by_number == NULL) {
        names_free(names);
        return error_set(err, ERROR_SYSTEM, ENOMEM, "making a table of names");
    }
    memset(names->by_name, 0xff, slots * sizeof *names->by_name);
    memset(names->by_number, 0xff, slots * sizeof *names->by_number);
    *ret_names = names;
    return 0;
}

void names_free(struct names *names)
{
    if (names == NULL)
        return;
    free(names->by_name);
    free(names->by_number);
    free(names);
}

/* The slot with the name, or the free one where it would be. */
static uint32_t slot_of_name(const struct names *names, const char *name)
{
    uint32_t slot = hash_name(name) & names->mask;

    while (names->by_name[slot] != NOTHING && strcmp(names->entries[names->by_name[slot]].name, name) != 0)
        slot = (slot + 1) & names->mask;
    return slot;
}

static uint32_t slot_of_number(const struct names *names, uint32_t number)
{
    uint32_t slot = hash_number(number) & names->mask;

    while (names->by_number[slot] != NOTHING && names->entries[names->by_number[slot]].number != number)
        slot = (slot + 1) & names->mask;
    return slot;
}

static uint32_t find(const struct names *names, uint32_t number)
{
    return names->by_number[slot_of_number(names, number)];
}

static uint32_t home(const struct names *names, const uint32_t *table, uint32_t slot)
{
    const struct entry *entry = &names->entries[table[slot]];

    return (table == names->by_name ? hash_name(entry->name) : hash_number(entry->number)) & names->mask;
}

/* Empty the slot; what stands behind it only because of it moves up. */
static void clear_slot(struct names *names, uint32_t *table, uint32_t slot)
{
    uint32_t hole = slot;

    for (uint32_t at = (slot + 1) & names->mask; table[at] != NOTHING; at = (at + 1) & names->mask) {
        uint32_t from_home = (at - home(names, table, at)) & names->mask;
        if (from_home < ((at - hole) & names->mask))
            continue;
        table[hole] = table[at];
        hole = at;
    }
    table[hole] = NOTHING;
}

/* The entry that was used longest ago, of those that may go. */
static uint32_t find_oldest(const struct names *names, uint64_t now_ns)
{
    uint32_t oldest = NOTHING;

    for (uint32_t i = 0; i < names->count; i++) {
        const struct entry *entry = &names->entries[i];
        bool is_kept = !entry->has_failed && now_ns - entry->used_ns < NAMES_KEPT_SECONDS * SECOND;
        if (entry->holders > 0 || is_kept)
            continue;
        if (oldest == NOTHING || entry->used_ns < names->entries[oldest].used_ns)
            oldest = i;
    }
    return oldest;
}

static void forget(struct names *names, uint32_t index)
{
    struct entry *entry = &names->entries[index];

    clear_slot(names, names->by_name, slot_of_name(names, entry->name));
    clear_slot(names, names->by_number, slot_of_number(names, entry->number));
}

/* All have their turn before one comes again; there are many more numbers than entries. */
static uint32_t next_number(struct names *names)
{
    uint32_t number;

    do {
        number = names->next++;
        if (names->next == NAMES_ADDRESSES)
            names->next = NAMES_FIRST;
    } while (find(names, number) != NOTHING);
    return number;
}

/* A place for one more: a free one, or that of a name that may go. */
static uint32_t make_room(struct names *names, uint64_t now_ns)
{
    if (names->count < names->most)
        return (uint32_t)names->count++;
    uint32_t index = find_oldest(names, now_ns);
    if (index != NOTHING)
        forget(names, index);
    return index;
}

int names_assign(struct names *names, const char *name, uint64_t now_ns, uint32_t *ret_number)
{
    uint32_t index = names->by_name[slot_of_name(names, name)];

    if (index == NOTHING) {
        index = make_room(names, now_ns);
        if (index == NOTHING)
            return -ENOBUFS;
        struct entry *entry = &names->entries[index];
        *entry = (struct entry){.number = next_number(names)};
        memcpy(entry->name, name, strnlen(name, NAME_SIZE - 1) + 1);
        names->by_name[slot_of_name(names, name)] = index;
        names->by_number[slot_of_number(names, entry->number)] = index;
    }
    names->entries[index].has_failed = false;
    names->entries[index].used_ns = now_ns;
    *ret_number = names->entries[index].number;
    return 0;
}

const char *names_find(const struct names *names, uint32_t number)
{
    uint32_t index = find(names, number);

    return index != NOTHING ? names->entries[index].name : NULL;
}

void names_hold(struct names *names, uint32_t number)
{
    uint32_t index = find(names, number);

    if (index != NOTHING)
        names->entries[index].holders++;
}

void names_drop(struct names *names, uint32_t number, uint64_t now_ns)
{
    uint32_t index = find(names, number);

    if (index == NOTHING)
        return;
    names->entries[index].holders--;
    names->entries[index].used_ns = now_ns;
}

void names_fail(struct names *names, uint32_t number)
{
    uint32_t index = find(names, number);

    if (index != NOTHING)
        names->entries[index].has_failed = names->entries[index].pin_count == 0;
}

void names_pin(struct names *names, uint32_t number, const struct address *pins, size_t count, uint64_t until_ns)
{
    uint32_t index = find(names, number);

    if (index == NOTHING)
        return;
    struct entry *entry = &names->entries[index];
    entry->pin_count = count < NAMES_PINS_MAX ? count : NAMES_PINS_MAX;
    entry->pinned_until_ns = until_ns;
    memcpy(entry->pins, pins, entry->pin_count * sizeof *pins);
}

size_t names_pinned(const struct names *names, uint32_t number, uint64_t now_ns, struct address pins[NAMES_PINS_MAX])
{
    uint32_t index = find(names, number);

    if (index == NOTHING || now_ns >= names->entries[index].pinned_until_ns)
        return 0;
    const struct entry *entry = &names->entries[index];
    memcpy(pins, entry->pins, entry->pin_count * sizeof *pins);
    return entry->pin_count;
}

size_t names_count(const struct names *names)
{
    return names->count;
}

/* fd68:7574:6368::/111 holds as many numbers as 198.18.0.0/15. */
static const uint8_t prefix6[13] = {0xfd, 0x68, 0x75, 0x74, 0x63, 0x68};

void names_address(uint32_t number, uint8_t family, struct address *ret_address)
{
    struct address address = {.family = family};
    uint8_t *tail = family == 4 ? address.bytes : address.bytes + 12;

    if (family == 6)
        memcpy(address.bytes, prefix6, sizeof prefix6);
    tail[0] = family == 4 ? 198 : 0;
    tail[1] = (uint8_t)((family == 4 ? 18 : 0) + (number >> 16));
    tail[2] = (uint8_t)(number >> 8);
    tail[3] = (uint8_t)number;
    *ret_address = address;
}

bool names_number(const struct address *address, uint32_t *ret_number)
{
    const uint8_t *tail = address->family == 4 ? address->bytes : address->bytes + 12;
    unsigned second = address->family == 4 ? tail[1] - 18U : tail[1];

    if (address->family == 4 ? tail[0] != 198 : memcmp(address->bytes, prefix6, sizeof prefix6) != 0)
        return false;
    if (second > 1)
        return false;
    *ret_number = second << 16 | (uint32_t)tail[2] << 8 | tail[3];
    return true;
}
