/* The pool keeps sandboxes as the configuration's defaults make them; other kinds are made when they are asked for. */
#include "gateway/engine/pool.h"
#include "gateway/surface/plan.h"
#include "gateway/surface/state.h"

int surface_fill_pool(struct surface *surface, struct error *err)
{
    const struct config *config = surface->options.config;
    struct pool_target target = {.min_idle = (uint32_t)config->sandbox.pool_min_idle,
                                 .max_idle = (uint32_t)config->sandbox.pool_max_idle};

    plan_class(config, NULL, &target.class, &target.limits);
    return pool_set(surface->options.engine, &target, config->sandbox.pool_enabled != 0 ? 1 : 0, err);
}
