#include "gateway/engine/pool_plan.h"

enum { BUSY_MS = 2 }; /* how soon to look again when somebody waits */

static uint64_t rest_ms(const struct pool_plan *plan)
{
    uint64_t rest = plan->running > 0 ? POOL_REST_MS : POOL_REST_QUIET_MS;

    if (plan->failures == 0)
        return rest;
    unsigned doublings = plan->failures - 1 < 7 ? plan->failures - 1 : 7;
    rest = (uint64_t)POOL_RETRY_FIRST_MS << doublings;
    return rest < POOL_RETRY_LAST_MS ? rest : POOL_RETRY_LAST_MS;
}

/* The class that lacks the largest part of what it should have. */
static bool find_poorest(const struct pool_plan_class *classes, size_t count, size_t *ret_class)
{
    bool found = false;

    for (size_t i = 0; i < count; i++) {
        uint64_t have = classes[i].idle + classes[i].making;
        if (have >= classes[i].min_idle)
            continue;
        const struct pool_plan_class *best = &classes[*ret_class];
        if (!found || have * best->min_idle < (uint64_t)(best->idle + best->making) * classes[i].min_idle)
            *ret_class = i;
        found = true;
    }
    return found;
}

struct pool_decision pool_decide(const struct pool_plan *plan, const struct pool_plan_class *classes, size_t count)
{
    size_t class = 0;

    for (size_t i = 0; i < count; i++) {
        if (classes[i].idle > (plan->is_draining ? 0 : classes[i].max_idle))
            return (struct pool_decision){.what = POOL_END, .class = i};
    }
    if (plan->is_draining || plan->making > 0 || !find_poorest(classes, count, &class))
        return (struct pool_decision){.what = POOL_NOTHING};
    uint64_t due_ms = plan->last_ms + rest_ms(plan);
    if (plan->now_ms < due_ms)
        return (struct pool_decision){.what = POOL_WAIT, .wait_ms = due_ms - plan->now_ms};
    if (plan->waiting > 0 || (plan->is_lively && plan->now_ms < plan->last_ms + POOL_PATIENCE_MS))
        return (struct pool_decision){.what = POOL_WAIT, .wait_ms = BUSY_MS};
    return (struct pool_decision){.what = POOL_MAKE, .class = class};
}
