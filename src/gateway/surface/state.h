/*
 * state: what the files of the surface share: the struct behind surface.h. Included by surface/'s own .c files only.
 */
#pragma once

#include "gateway/policy/blocklist.h"
#include "gateway/policy/rate.h"
#include "gateway/surface/strangers.h"
#include "gateway/surface/surface.h"

/* Counted for /metrics. */
struct surface_counts {
    uint64_t unauthenticated;
    uint64_t forbidden;
    uint64_t limited;
    uint64_t foreign;    /* Host or Origin */
    uint64_t blocked;    /* commands */
    uint64_t counted;    /* refusals that share a record */
    uint64_t answers[6]; /* by the first digit of the status; 0: the client went */
    uint64_t duration_ns;
};

struct surface_profile {
    struct blocklist *list; /* NULL: it has none of its own */
};

/* The compiled lists of one configuration: the default, then one per profile. */
struct surface_policy {
    struct blocklist *standard;
    struct surface_profile *profiles;
    size_t profile_count;
};

/* A stream of events: it ends when its client goes, or when it is told to. */
struct surface_stream {
    struct surface_stream *next;
    struct surface_stream **place; /* what points to it */
    void (*end)(struct surface_stream *stream);
};

struct surface {
    struct surface_options options;
    const struct server *servers[SURFACE_SERVERS_MAX];
    struct surface_stream *streams;
    struct route *routes;
    struct router *router;
    struct rate *by_address;
    struct rate *by_agent;
    struct surface_policy policy;
    struct surface_counts counts;
    struct strangers strangers;
    struct strangers ended; /* those of the interval before, while they are told */
    uv_timer_t interval;    /* of these; it runs while there are any */
    uint64_t start_ns;
};

/* A refusal of somebody who is not known: does it get a record of its own? */
enum strangers_verdict surface_note_stranger(struct surface *surface, const struct peer *peer, const char *code);

void surface_add_stream(struct surface *surface, struct surface_stream *stream);
void surface_remove_stream(struct surface_stream *stream);

/* The list for sandboxes of this profile; NULL or unknown: the default. */
const struct blocklist *surface_blocklist(const struct surface *surface, const char *profile);
