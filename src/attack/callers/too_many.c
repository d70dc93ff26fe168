/*
 * too-many: sandboxes and commands without end: more than the configured number are 429, and an end makes room.
 */
#include "attack/attack.h"
#include "attack/tenant.h"

#include <unistd.h>

enum { SANDBOXES = 6, EXECS = 12 };

static bool start(const struct tenant *tenant)
{
    char path[TENANT_PATH_SIZE];

    return caller_ask(&(struct ask){.method = "POST",
                                    .path = tenant_path(tenant, "/execs", path),
                                    .key = caller_key(),
                                    .body = "{\"command\":\"sleep 100\"}"},
                      NULL) == 201;
}

static void calls(struct attempt *attempt)
{
    struct tenant tenants[SANDBOXES];
    unsigned execs = 0;
    struct ask create = {.method = "POST", .path = "/api/v1/sandboxes", .key = caller_key(), .body = "{}"};

    for (unsigned i = 0; i < SANDBOXES; i++) {
        if (!tenant_move_in(&tenants[i], attempt, caller_key(), NULL))
            return;
    }
    for (unsigned i = 0; i < 3; i++)
        caller_try(attempt, "a seventh sandbox of six", &create, STATUSES(429));
    for (unsigned i = 0; i < 2 * EXECS; i++)
        execs += start(&tenants[i % SANDBOXES]) ? 1 : 0;
    attempt_say(attempt, "24 commands of 12", execs == EXECS, "%u run", execs);
    for (unsigned i = 0; i < SANDBOXES; i++)
        tenant_move_out(&tenants[i]);
    int status = 429;
    struct reply reply = {0};
    for (unsigned i = 0; i < 500 && status == 429; i++) {
        reply_release(&reply);
        status = caller_ask(&create, &reply);
        (void)usleep(status == 429 ? 10000 : 0);
    }
    attempt_say(attempt, "keeping others out for good", status == 201, "the answer is %d", status);
    reply_field(&reply, "id", tenants[0].id, sizeof tenants[0].id);
    tenant_move_out(&tenants[0]);
    reply_release(&reply);
}

const struct attack attack_too_many = {
    .name = "too-many",
    .tries = "sandboxes and commands without end",
    .group = ATTACK_CALLERS,
    .calls = calls,
};
