/*
 * ids-of-others: another tenant's sandbox or command by its id: 404, and told apart from one that never was by
 * nothing, not by a byte.
 */
#include "attack/attack.h"
#include "attack/routes.h"

#include <stdio.h>
#include <string.h>

#define NOBODY_HAS "aaaaaaaaaaaaaaaaaaaaaaaaaa"

static bool has_id(const struct route *route)
{
    return strstr(route->pattern, "{id}") != NULL || strstr(route->pattern, "{eid}") != NULL;
}

/* How long an answer is, all of it. */
static size_t length_of(const char *path, const char *key)
{
    struct reply reply;
    int status = caller_ask(&(struct ask){.path = path, .key = key}, &reply);
    size_t length = status == 404 ? strlen(reply.head) + (size_t)reply.body_bytes : 0;

    reply_release(&reply);
    return length;
}

static void compare(struct attempt *attempt, const char *what, const char *front, const char *id, const char *none,
                    const char *key)
{
    char theirs[160];
    char nobodys[160];

    (void)snprintf(theirs, sizeof theirs, "%s%s", front, id);
    (void)snprintf(nobodys, sizeof nobodys, "%s%s", front, none);
    size_t one = length_of(theirs, key);
    size_t other = length_of(nobodys, key);
    attempt_say(attempt, what, one == other && one > 0, "%zu bytes for one that is there, else %zu", one, other);
}

static void calls(struct attempt *attempt)
{
    static struct routes routes;
    struct tenant tenant = {0};
    struct reply reply = {0};
    char one[128] = "";
    char other[128] = "";
    char id[64];

    if (!tenant_make_key("run", 0, one, sizeof one, id, sizeof id) ||
        !tenant_make_key("run", 0, other, sizeof other, id, sizeof id))
        attempt_say(attempt, "making keys", false, "there are none");
    if (routes_prepare(&routes, &tenant, attempt, one)) {
        routes_try(attempt, &routes, other, has_id, STATUSES(404));
        int status = caller_ask(&(struct ask){.path = "/api/v1/sandboxes", .key = other}, &reply);
        attempt_say(attempt, "a list", status == 200 && !reply_says(&reply, tenant.id), "it names another's sandbox");
        compare(attempt, "telling sandboxes by length", "/api/v1/sandboxes/", tenant.id, "sb_" NOBODY_HAS, other);
        compare(attempt, "telling commands by length", "/api/v1/execs/", tenant.exec, "ex_" NOBODY_HAS, other);
        routes_leave(&tenant, attempt);
    }
    reply_release(&reply);
    tenant_move_out(&tenant);
}

const struct attack attack_ids_of_others = {
    .name = "ids-of-others",
    .tries = "another tenant's sandbox and command, by id",
    .group = ATTACK_CALLERS,
    .calls = calls,
};
