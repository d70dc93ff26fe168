/*
 * names: the addresses that stand for names in one sandbox: 198.18.0.0/15, and as many of an IPv6 range. Pure.
 *
 * A name keeps its address for as long as it is in use or its answer may still be remembered somewhere. The table has a
 * cap. When it is full the name that was used longest ago goes, if there is one that may; its address is given to
 * another name only after all others were, and until then it stands for nothing.
 */
#pragma once

#include "airlock/address.h"
#include "airlock/name.h"

enum {
    NAMES_TTL_SECONDS = 60,   /* told to those who ask */
    NAMES_KEPT_SECONDS = 300, /* since it was last asked for or used */
    NAMES_FIRST = 256,        /* those below are the sandbox's own and the resolver's */
    NAMES_ADDRESSES = 131072,
    NAMES_PINS_MAX = 8,
};

struct names;

/* `start` says, at random, where the numbers start: what a client remembers of an earlier table should mean nothing. */
_must_use_ int names_new(size_t most, uint32_t start, struct names **ret_names, struct error *err);
void names_free(struct names *names);

/* The number that stands for the name; a new one, should it have none. -ENOBUFS: all are in use. */
_must_use_ int names_assign(struct names *names, const char *name, uint64_t now_ns, uint32_t *ret_number);

/* The name, or NULL. It lives until the next names_assign(), or until names_drop() after a names_hold(). */
const char *names_find(const struct names *names, uint32_t number);

/* A connection uses it, and uses it no more. */
void names_hold(struct names *names, uint32_t number);
void names_drop(struct names *names, uint32_t number, uint64_t now_ns);

/* It has none, and never had: unless it is asked for again, its place may be another's at once. */
void names_fail(struct names *names, uint32_t number);

/* The real addresses of the name, resolved and vetted, and until when they hold; a copy of those that still do. */
void names_pin(struct names *names, uint32_t number, const struct address *pins, size_t count, uint64_t until_ns);
size_t names_pinned(const struct names *names, uint32_t number, uint64_t now_ns, struct address pins[NAMES_PINS_MAX]);

size_t names_count(const struct names *names);

void names_address(uint32_t number, uint8_t family, struct address *ret_address);
/* Is it one of these addresses, and which? */
bool names_number(const struct address *address, uint32_t *ret_number);
