/*
 * narrow-keys: a key that may only read touches nothing, one that may run commands makes no keys and reads no
 * figures of everybody's.
 */
#include "attack/attack.h"
#include "attack/routes.h"

#include <string.h>

static bool changes_something(const struct route *route)
{
    return strcmp(route->method, "GET") != 0;
}

static bool is_of_the_operator(const struct route *route)
{
    return strncmp(route->path, "/api/v1/keys", 12) == 0 || strcmp(route->path, "/metrics") == 0 ||
           strcmp(route->path, "/health") == 0;
}

static void calls(struct attempt *attempt)
{
    static struct routes routes;
    struct tenant tenant;
    char reader[128] = "";
    char runner[128] = "";
    char id[64];

    if (!tenant_make_key("read", 0, reader, sizeof reader, id, sizeof id) ||
        !tenant_make_key("run", 0, runner, sizeof runner, id, sizeof id))
        attempt_say(attempt, "making keys", false, "there are none");
    if (routes_prepare(&routes, &tenant, attempt, caller_key())) {
        routes_try(attempt, &routes, reader, changes_something, STATUSES(403));
        routes_try(attempt, &routes, runner, is_of_the_operator, STATUSES(403));
        routes_leave(&tenant, attempt);
    }
    tenant_move_out(&tenant);
}

const struct attack attack_narrow_keys = {
    .name = "narrow-keys",
    .tries = "more than a key's scope allows",
    .group = ATTACK_CALLERS,
    .calls = calls,
};
