/*
 * resolver: names into addresses, by the machine's own resolvers, on the airlock's loop.
 *
 * Only names that were allowed come here. c-ares asks; a name that several wait for is asked for once.
 */
#pragma once

#include "airlock/address.h"

#include <uv.h>

enum { RESOLVER_ADDRESSES_MAX = 8 };

struct resolution {
    int error;                                        /* 0, -ENOENT: there is no such name, or another -errno */
    struct address addresses[RESOLVER_ADDRESSES_MAX]; /* the two families in turns */
    size_t count;
    uint32_t ttl;
};

typedef void resolver_done(void *data, const struct resolution *resolution);

struct resolver;
struct resolver_wait;

/* `configuration`: the text of a resolv.conf; without a nameserver in it, the one at 127.0.0.1. */
_must_use_ int resolver_new(uv_loop_t *loop, const char *configuration, struct resolver **ret_resolver,
                            struct error *err);

/* `done` is called once, never from within this call, unless the wait is forgotten before. NULL: no memory. */
struct resolver_wait *resolver_ask(struct resolver *resolver, const char *name, resolver_done *done, void *data);
void resolver_forget(struct resolver_wait *wait);
