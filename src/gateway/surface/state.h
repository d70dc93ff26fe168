/*
 * state: what the files of the surface share: the struct behind surface.h. Included by surface/'s own .c files only.
 */
#pragma once

#include "gateway/policy/blocklist.h"
#include "gateway/policy/rate.h"
#include "gateway/surface/surface.h"

/* Counted for /metrics. */
struct surface_counts {
    uint64_t unauthenticated;
    uint64_t forbidden;
    uint64_t limited;
    uint64_t foreign;    /* Host or Origin */
    uint64_t blocked;    /* commands */
    uint64_t answers[6]; /* by the first digit of the status; 0: the client went */
    uint64_t duration_ns;
};

/* The compiled lists of one configuration: the default, then one per profile, NULL for one that has none. */
struct surface_policy {
    struct blocklist *standard;
    struct blocklist **profiles;
    size_t profile_count;
};

struct surface {
    struct surface_options options;
    const struct server *server;
    struct route *routes;
    struct router *router;
    struct rate *by_address;
    struct rate *by_agent;
    struct surface_policy policy;
    struct surface_counts counts;
    uint64_t start_ns;
};

/* The list for sandboxes of this profile; NULL or unknown: the default. */
const struct blocklist *surface_blocklist(const struct surface *surface, const char *profile);
