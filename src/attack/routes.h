/*
 * routes: every route that the daemon says it has, from its own /openapi.yaml, so that none is forgotten.
 */
#pragma once

#include "attack/tenant.h"

enum { ROUTES_MAX = 96, ROUTE_PATH_SIZE = 192, ROUTE_WHAT_SIZE = 96 };

struct route {
    char method[8];
    char pattern[96];           /* "/api/v1/sandboxes/{id}" */
    char path[ROUTE_PATH_SIZE]; /* with what the placeholders stand for */
    bool is_open;               /* to callers without credentials: two are, and that is written down here */
};

struct routes {
    struct route list[ROUTES_MAX];
    size_t count;
};

/*
 * A sandbox with a running command, whose ids the placeholders become. False when that can't be had, which is said; the
 * tenant moves out all the same.
 */
_must_use_ bool routes_prepare(struct routes *routes, struct tenant *tenant, struct attempt *attempt, const char *key);

/* Is the command still running? Then nobody has touched it. Moves out. */
void routes_leave(struct tenant *tenant, struct attempt *attempt);

/* May this route be tried? NULL: all of them. */
typedef bool routes_filter(const struct route *route);

/* The same call on every route that is not open: refused with one of these statuses. */
void routes_try(struct attempt *attempt, const struct routes *routes, const char *key, routes_filter *filter,
                const int *statuses);
