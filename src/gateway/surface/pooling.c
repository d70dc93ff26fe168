/* The pool's classes: that of the defaults, and those of profiles that differ from it. */
#include "gateway/engine/pool.h"
#include "gateway/surface/plan.h"
#include "gateway/surface/state.h"

#include <string.h>

static bool is_same(const struct sandbox_class *a, const struct sandbox_class *b)
{
    return strcmp(a->template_name, b->template_name) == 0 && a->user == b->user && a->filter == b->filter &&
           a->root_is_writable == b->root_is_writable && a->disk_is_image == b->disk_is_image &&
           a->disk_bytes == b->disk_bytes;
}

static bool is_known(const struct pool_target *targets, size_t count, const struct sandbox_class *class)
{
    for (size_t i = 0; i < count; i++) {
        if (is_same(&targets[i].class, class))
            return true;
    }
    return false;
}

int surface_fill_pool(struct surface *surface, struct error *err)
{
    const struct config *config = surface->options.config;
    struct pool_target targets[POOL_CLASSES_MAX] = {0};
    size_t count = 0;

    for (size_t i = 0; config->sandbox.pool_enabled != 0 && i <= config->profile_count && count < POOL_CLASSES_MAX;
         i++) {
        struct pool_target *target = &targets[count];
        plan_class(config, i == 0 ? NULL : &config->profiles[i - 1], &target->class, &target->limits);
        if (is_known(targets, count, &target->class))
            continue;
        /* Profiles are filled once they are used: only the defaults are kept ready from the start. */
        target->min_idle = count == 0 ? (uint32_t)config->sandbox.pool_min_idle : 0;
        target->max_idle = (uint32_t)config->sandbox.pool_max_idle;
        count++;
    }
    return pool_set(surface->options.engine, targets, count, err);
}
