/*
 * registry: the keeper's sandboxes, found by id.
 *
 * AS ROOT. Ids are the client's: whatever it chooses, no more sandboxes than SANDBOXES_MAX are ever in it.
 */
#pragma once

#include "keeper/sandbox.h"

enum { REGISTRY_BUCKETS = 1024 };

struct registry {
    size_t count;
    struct sandbox *buckets[REGISTRY_BUCKETS];
};

struct sandbox *registry_find(const struct registry *registry, uint64_t id);
void registry_add(struct registry *registry, struct sandbox *sandbox);

/* It must be in it. */
void registry_remove(struct registry *registry, struct sandbox *sandbox);

/*
 * All of them, one after the other: start with NULL; NULL at the end. The one just given may be removed only after
 * the next one was asked for.
 */
struct sandbox *registry_next(const struct registry *registry, const struct sandbox *sandbox);
