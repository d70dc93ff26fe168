/*
 * wrong-credentials: keys that are nearly right, in every place where one could stand; and of two the wrong one must
 * not be overlooked.
 */
#include "attack/attack.h"
#include "attack/routes.h"

#include <stdio.h>
#include <string.h>

/* %s is the right key. */
static const struct {
    const char *what;
    const char *headers;
} rows[] = {
    {"a byte more", "Authorization: Bearer %sa\r\n"},
    {"a byte before", "Authorization: Bearer a%s\r\n"},
    {"an empty key", "Authorization: Bearer \r\n"},
    {"no key", "Authorization: Bearer\r\n"},
    {"no scheme", "Authorization: %s\r\n"},
    {"another scheme", "Authorization: Digest %s\r\n"},
    {"a scheme with a tab", "Authorization: Bearer\t%s\r\n"},
    {"two of them", "Authorization: Bearer %s\r\nAuthorization: Bearer x\r\n"},
    {"a key after a wrong one", "Authorization: Bearer x\r\nX-API-Key: %s\r\n"},
    {"two key headers", "X-API-Key: x\r\nX-API-Key: %s\r\n"},
    {"a list of keys", "X-API-Key: x, %s\r\n"},
    {"a quoted key", "X-API-Key: \"%s\"\r\n"},
    {"a cookie", "Cookie: session=%s; key=%s\r\n"},
    {"a key as a password", "Authorization: Basic YWRtaW46%s\r\n"},
    {"somebody else's password", "Authorization: Basic cm9vdDpyb290\r\n"},
    {"an empty password", "Authorization: Basic YWRtaW46\r\n"},
    {"a password with a NUL", "Authorization: Basic YWRtaW46AGE=\r\n"},
    {"what a proxy would say", "X-Forwarded-User: admin\r\nX-Forwarded-For: 127.0.0.1\r\nX-Real-IP: %s\r\n"},
};

static void try_row(struct attempt *attempt, const char *what, const char *headers)
{
    char text[512];
    const char *key = strstr(headers, "%s");
    size_t before = key != NULL ? (size_t)(key - headers) : strlen(headers);

    (void)snprintf(text, sizeof text, "%.*s%s%s", (int)before, headers, key != NULL ? caller_key() : "",
                   key != NULL ? key + 2 : "");
    caller_try(attempt, what, &(struct ask){.path = "/api/v1/tools", .headers = text}, STATUSES(401));
}

static void try_lengths(struct attempt *attempt)
{
    static char text[9000] = "X-API-Key: ";
    char path[160];

    (void)memset(text + strlen(text), 'k', 8192);
    (void)memcpy(text + strlen(text), "\r\n", 3);
    caller_try(attempt, "a key of 8 KiB", &(struct ask){.path = "/api/v1/tools", .headers = text}, STATUSES(401));
    (void)snprintf(path, sizeof path, "/api/v1/tools?key=%s&access_token=%s", caller_key(), caller_key());
    caller_try(attempt, "a key in the query", &(struct ask){.path = path}, STATUSES(401));
}

static void calls(struct attempt *attempt)
{
    static struct routes routes;
    struct tenant tenant;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        try_row(attempt, rows[i].what, rows[i].headers);
    try_lengths(attempt);
    if (routes_prepare(&routes, &tenant, attempt, caller_key())) {
        routes_try(attempt, &routes, "hutch_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", NULL, STATUSES(401));
        routes_leave(&tenant, attempt);
    }
    tenant_move_out(&tenant);
}

const struct attack attack_wrong_credentials = {
    .name = "wrong-credentials",
    .tries = "keys that are nearly right, on every route",
    .group = ATTACK_CALLERS,
    .calls = calls,
};
