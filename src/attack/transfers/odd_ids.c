/*
 * odd-ids: names that are no ids where one is expected: of another folder, too long, or like a real one in other
 * letters.
 */
#include "attack/attack.h"
#include "attack/tenant.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { LONG = 7000 };

static const char *const ids[] = {
    "..",
    ".",
    "",
    "%2e%2e",
    "../x",
    "a/b",
    "sb_",
    "sb_..",
    "sb_%2e%2e%2fx",
    "sb_%00aaaaaaaaaaaaaaaaaaaaaaaaa",
    "sb_aaaaaaaaaaaaaaaaaaaaaaaaaa",
    "sb_aaaaaaaaaaaaaaaaaaaaaaaaaa%0a",
    "sb_%d0%b0aaaaaaaaaaaaaaaaaaaaaaaa",
    "%d1%95b_aaaaaaaaaaaaaaaaaaaaaaaaaa",
    "ex_aaaaaaaaaaaaaaaaaaaaaaaaaa",
    "*",
    "%25",
    "0",
    "-1",
    "null",
};

static void try_id(struct attempt *attempt, const char *what, const char *id)
{
    static const char *const rests[] = {"", "/files/x", "/logs"};

    for (size_t i = 0; i < sizeof rests / sizeof *rests; i++) {
        char path[TENANT_PATH_SIZE];
        char label[96];
        (void)snprintf(path, sizeof path, "/api/v1/sandboxes/%s%s", id, rests[i]);
        (void)snprintf(label, sizeof label, "'%.60s'%s", what, rests[i]);
        caller_try(attempt, label, &(struct ask){.path = path, .key = caller_key()}, STATUSES(400, 404));
    }
}

static void calls(struct attempt *attempt)
{
    struct tenant tenant;
    char name[LONG + 1];

    if (!tenant_move_in(&tenant, attempt, caller_key(), NULL))
        return;
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        try_id(attempt, ids[i], ids[i]);
    (void)memset(name, 'a', sizeof name);
    name[LONG] = '\0';
    memcpy(name, "sb_", 3);
    try_id(attempt, "7,000 bytes", name);
    (void)snprintf(name, sizeof name, "%s", tenant.id);
    for (char *at = name; *at != '\0'; at++)
        *at = (char)toupper((unsigned char)*at);
    try_id(attempt, "in capitals", name);
    (void)snprintf(name, sizeof name, "%s%%20", tenant.id);
    try_id(attempt, "with a blank", name);
    (void)snprintf(name, sizeof name, "%%20%s", tenant.id);
    try_id(attempt, "after a blank", name);
    (void)snprintf(name, sizeof name, "%s.", tenant.id);
    try_id(attempt, "with a dot", name);
    (void)snprintf(name, sizeof name, "%.*s", (int)strlen(tenant.id) - 1, tenant.id);
    try_id(attempt, "cut short", name);
    tenant_move_out(&tenant);
}

const struct attack attack_odd_ids = {
    .name = "odd-ids",
    .tries = "names that are no ids of sandboxes",
    .group = ATTACK_TRANSFERS,
    .calls = calls,
};
