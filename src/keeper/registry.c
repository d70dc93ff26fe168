#include "keeper/registry.h"

static size_t bucket_of(uint64_t id)
{
    return (id ^ (id >> 32)) % REGISTRY_BUCKETS;
}

struct sandbox *registry_find(const struct registry *registry, uint64_t id)
{
    struct sandbox *sandbox = registry->buckets[bucket_of(id)];

    while (sandbox != NULL && sandbox->id != id)
        sandbox = sandbox->next;
    return sandbox;
}

void registry_add(struct registry *registry, struct sandbox *sandbox)
{
    struct sandbox **bucket = &registry->buckets[bucket_of(sandbox->id)];

    sandbox->next = *bucket;
    *bucket = sandbox;
    registry->count++;
}

void registry_remove(struct registry *registry, struct sandbox *sandbox)
{
    struct sandbox **at = &registry->buckets[bucket_of(sandbox->id)];

    while (*at != sandbox)
        at = &(*at)->next;
    *at = sandbox->next;
    registry->count--;
}

struct sandbox *registry_next(const struct registry *registry, const struct sandbox *sandbox)
{
    size_t bucket = 0;

    if (sandbox != NULL) {
        if (sandbox->next != NULL)
            return sandbox->next;
        bucket = bucket_of(sandbox->id) + 1;
    }
    while (bucket < REGISTRY_BUCKETS && registry->buckets[bucket] == NULL)
        bucket++;
    return bucket < REGISTRY_BUCKETS ? registry->buckets[bucket] : NULL;
}
