/*
 * expired-key: a key whose time is over is no key, also where it was used a moment before and is remembered.
 */
#include "attack/attack.h"
#include "attack/routes.h"

#include <unistd.h>

static void calls(struct attempt *attempt)
{
    static struct routes routes;
    struct tenant tenant;
    char key[128] = "";
    char id[64] = "";

    bool is_made = tenant_make_key("admin", 1, key, sizeof key, id, sizeof id);
    struct ask tools = {.path = "/api/v1/tools", .key = key};
    int status = is_made ? caller_ask(&tools, NULL) : 0;
    if (status != 200)
        attempt_say(attempt, "using it before", false, "the answer is %d", status);
    for (int i = 0; i < 500 && status == 200; i++) {
        (void)usleep(10000);
        status = caller_ask(&tools, NULL);
    }
    if (routes_prepare(&routes, &tenant, attempt, caller_key())) {
        routes_try(attempt, &routes, key, NULL, STATUSES(401));
        routes_leave(&tenant, attempt);
    }
    tenant_move_out(&tenant);
}

const struct attack attack_expired_key = {
    .name = "expired-key",
    .tries = "every route with a key that has expired",
    .group = ATTACK_CALLERS,
    .calls = calls,
};
