/*
 * revoked-key: a key that was taken back is no key from that moment on, also where it was used a moment before and
 * is remembered.
 */
#include "attack/attack.h"
#include "attack/routes.h"

#include <stdio.h>

static void calls(struct attempt *attempt)
{
    static struct routes routes;
    struct tenant tenant;
    char key[128] = "";
    char id[64] = "";
    char path[96];

    bool is_made = tenant_make_key("admin", 0, key, sizeof key, id, sizeof id);
    struct ask tools = {.path = "/api/v1/tools", .key = key};
    int status = is_made ? caller_ask(&tools, NULL) : 0;
    if (status != 200)
        attempt_say(attempt, "using it before", false, "the answer is %d", status);
    (void)snprintf(path, sizeof path, "/api/v1/keys/%s", id);
    if (status == 200)
        (void)caller_ask(&(struct ask){.method = "DELETE", .path = path, .key = caller_key()}, NULL);
    if (routes_prepare(&routes, &tenant, attempt, caller_key())) {
        routes_try(attempt, &routes, key, NULL, STATUSES(401));
        routes_leave(&tenant, attempt);
    }
    tenant_move_out(&tenant);
}

const struct attack attack_revoked_key = {
    .name = "revoked-key",
    .tries = "every route with a key that was taken back",
    .group = ATTACK_CALLERS,
    .calls = calls,
};
