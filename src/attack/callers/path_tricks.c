/*
 * path-tricks: paths that one part reads as an open route and another as something else (CVE-2021-41773,
 * CVE-2021-42013 and their kin).
 */
#include "attack/attack.h"
#include "attack/caller.h"

static const char *const paths[] = {
    "/healthz/../api/v1/keys",
    "/healthz/..%2fapi/v1/keys",
    "/healthz/%2e%2e/api/v1/keys",
    "/healthz/.%2e/api/v1/keys",
    "/healthz/%252e%252e/api/v1/keys",
    "/healthz/..;/api/v1/keys",
    "/healthz;/../api/v1/keys",
    "/healthz\\..\\api\\v1\\keys",
    "/healthz%5c..%5capi/v1/keys",
    "/healthz%00/api/v1/keys",
    "/healthz%00",
    "/healthz%0a",
    "/healthz%20",
    "/healthz/",
    "//healthz",
    "/./healthz",
    "/healthz/.",
    "/HEALTHZ",
    "/healthz#/api/v1/keys",
    "/healthz%",
    "/healthz%2",
    "/healthz%zz",
    "/healthz%u002f",
    "/%c0%ae%c0%ae/api/v1/keys",
    "/%e0%80%ae/api/v1/keys",
    "/%f0%80%80%ae/api/v1/keys",
    "/api%2fv1%2fkeys",
    "/api/v1//keys",
    "/api/v1/./keys",
    "/api/v1/sandboxes/../keys",
    "/openapi.yaml/../../etc/passwd",
    "/openapi.yaml%00.html",
    "/../../../../etc/passwd",
    "/%2e%2e/%2e%2e/etc/passwd",
    "/etc/passwd",
    "/.git/config",
    "/state/hutch.db",
};

static void calls(struct attempt *attempt)
{
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        caller_try(attempt, paths[i], &(struct ask){.path = paths[i]}, STATUSES(400, 401, 404));
}

const struct attack attack_path_tricks = {
    .name = "path-tricks",
    .tries = "paths that mean something else to somebody",
    .group = ATTACK_CALLERS,
    .calls = calls,
};
