/*
 * pool: sandboxes of a class made ahead. sandbox_create() claims one when its class is pooled; a claim sets limits and
 * identity and neither clones nor mounts. Used by the gateway's main (classes) and by surfaces (figures, drain).
 *
 * Refill is paced: one at a time, with a rest between, and never while a creation or an exec waits for the keeper or
 * for init. When to make one and when to end one is decided in pool_plan.c, which does nothing else. The host name in a
 * sandbox from the pool, as in any other, is "sandbox".
 */
#pragma once

#include "gateway/engine/sandbox.h"

enum { POOL_CLASSES_MAX = 64, POOL_IDLE_MAX = 1024 };

struct pool_target {
    struct sandbox_class class;
    struct sandbox_limits limits; /* those it is made with: a claim that wants others costs a round trip */
    uint32_t min_idle;
    uint32_t max_idle; /* more than that are ended */
};

/* These classes and no others from now on; what is pooled of others is ended. */
_must_use_ int pool_set(struct engine *engine, const struct pool_target *targets, size_t count, struct error *err);

/* End what is pooled: how many. They are made anew as pool_set() said, paced as ever. */
size_t pool_drain(struct engine *engine);

struct pool_figures {
    uint32_t classes;
    uint32_t idle;
    uint32_t making;
    uint32_t in_use; /* live ones that came from the pool */
    uint32_t min_idle;
    uint32_t max_idle;
    uint64_t claimed;
    uint64_t missed; /* creations of a pooled class that found it empty */
};
void pool_figures(const struct engine *engine, struct pool_figures *ret_figures);
