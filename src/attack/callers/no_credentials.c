/*
 * no-credentials: a route that was forgotten when credentials were asked for lets everybody on the machine run
 * commands.
 */
#include "attack/attack.h"
#include "attack/routes.h"

static void calls(struct attempt *attempt)
{
    static struct routes routes;
    struct tenant tenant;

    if (routes_prepare(&routes, &tenant, attempt, caller_key())) {
        routes_try(attempt, &routes, NULL, NULL, STATUSES(401));
        routes_leave(&tenant, attempt);
    }
    tenant_move_out(&tenant);
}

const struct attack attack_no_credentials = {
    .name = "no-credentials",
    .tries = "every route without a key",
    .group = ATTACK_CALLERS,
    .calls = calls,
};
