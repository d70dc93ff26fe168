/*
 * memory: who of the keeper's sandboxes ran out of memory, told to the client.
 *
 * AS ROOT. What the kernel says makes sandboxes suspects; only suspects are looked at, in passes that take at most a
 * small share of the keeper's time, whatever tenants do. A keeper has one.
 */
#pragma once

#include "keeper/oom.h"
#include "keeper/sandbox.h"
#include "keeper/source.h"

enum { MEMORY_BUCKETS = 256 };

struct memory_group {
    struct source source;
    bool is_watched;
    bool is_heard; /* and not listened to before the next pass */
};

struct memory {
    struct oom oom;
    struct memory_group groups[OOM_GROUPS];
    struct sandbox *watched[MEMORY_BUCKETS]; /* by watch */
    struct sandbox *suspects;
    size_t heard;     /* groups */
    uint64_t pass_ns; /* not before */
};

void memory_init(struct memory *memory, const struct cgroups *cgroups);
void memory_release(struct memory *memory);

/* A new sandbox; and one that was removed, or never watched. */
_must_use_ int memory_watch(struct keeper *keeper, struct sandbox *sandbox, struct error *err);
void memory_forget(struct memory *memory, struct sandbox *sandbox);

/* A pass, when one is due. 0 or -errno. */
_must_use_ int memory_look(struct keeper *keeper);

/* Until it is; -1: there is nothing to look at. */
int memory_wait_ms(const struct memory *memory);
