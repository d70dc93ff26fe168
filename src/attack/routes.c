#include "attack/routes.h"

#include <stdio.h>
#include <string.h>

enum { LEAST = 25 };

static const char *const methods[] = {"get", "put", "post", "delete", "patch"};

static const char *stand_in(const char *name, size_t length, const char *sandbox, const char *exec)
{
    return strncmp(name, "id}", length) == 0 ? sandbox : strncmp(name, "eid}", length) == 0 ? exec : "x";
}

static void fill_in(struct route *route, const char *sandbox, const char *exec)
{
    size_t n = 0;

    for (const char *at = route->pattern; *at != '\0' && n < ROUTE_PATH_SIZE - 1;) {
        if (*at != '{') {
            route->path[n++] = *at++;
            continue;
        }
        size_t length = strcspn(at + 1, "}") + 1;
        int written = snprintf(route->path + n, ROUTE_PATH_SIZE - n, "%s", stand_in(at + 1, length, sandbox, exec));
        n += written > 0 ? (size_t)written : 0;
        at += 1 + length;
    }
    route->path[n < ROUTE_PATH_SIZE ? n : ROUTE_PATH_SIZE - 1] = '\0';
}

static int add(struct routes *routes, const char *method, const char *pattern, const char *sandbox, const char *exec)
{
    struct route *route = &routes->list[routes->count];

    if (routes->count == ROUTES_MAX)
        return -ENOBUFS;
    for (size_t i = 0; i <= strlen(method); i++)
        route->method[i] = (char)(method[i] >= 'a' ? method[i] - 'a' + 'A' : method[i]);
    (void)snprintf(route->pattern, sizeof route->pattern, "%s", pattern);
    route->is_open = strcmp(pattern, "/healthz") == 0 || strcmp(pattern, "/openapi.yaml") == 0;
    fill_in(route, sandbox, exec);
    routes->count++;
    return 0;
}

/* Paths are indented by two blanks, their methods by four; nothing else of the file's looks like that. */
static int parse(struct routes *routes, char *text, const char *sandbox, const char *exec)
{
    const char *pattern = NULL;
    int r = 0;

    for (char *line; r == 0 && (line = strtok_r(text, "\n", &text)) != NULL;) {
        char *colon = strrchr(line, ':');
        if (colon == NULL || colon[1] != '\0')
            continue;
        *colon = '\0';
        if (strncmp(line, "  /", 3) == 0)
            pattern = line + 2;
        for (size_t i = 0; pattern != NULL && r == 0 && i < sizeof methods / sizeof *methods; i++) {
            if (strncmp(line, "    ", 4) == 0 && strcmp(line + 4, methods[i]) == 0)
                r = add(routes, methods[i], pattern, sandbox, exec);
        }
    }
    return r < 0 ? r : routes->count >= LEAST ? 0 : -ENODATA;
}

static int read_routes(struct routes *routes, const char *sandbox, const char *exec)
{
    struct reply reply;

    routes->count = 0;
    int status = caller_ask(&(struct ask){.path = "/openapi.yaml"}, &reply);
    int r = status != 200 ? -EBADMSG : parse(routes, (char *)reply.body.data, sandbox, exec);
    reply_release(&reply);
    return r;
}

bool routes_prepare(struct routes *routes, struct tenant *tenant, struct attempt *attempt, const char *key)
{
    if (!tenant_move_in(tenant, attempt, key, NULL) || !tenant_start(tenant, attempt, "sleep 100"))
        return false;
    int r = read_routes(routes, tenant->id, tenant->exec);
    if (r < 0)
        attempt_say(attempt, "reading /openapi.yaml", false, "%s", strerror(-r));
    return r == 0;
}

void routes_leave(struct tenant *tenant, struct attempt *attempt)
{
    char path[TENANT_PATH_SIZE];
    struct reply reply;

    (void)snprintf(path, sizeof path, "/api/v1/execs/%s", tenant->exec);
    int status = caller_ask(&(struct ask){.path = path, .key = caller_key()}, &reply);
    attempt_say(attempt, "touching a command", status == 200 && reply_says(&reply, "\"running\""),
                "it does not run any more");
    reply_release(&reply);
    tenant_move_out(tenant);
}

void routes_try(struct attempt *attempt, const struct routes *routes, const char *key, routes_filter *filter,
                const int *statuses)
{
    for (size_t i = 0; i < routes->count; i++) {
        const struct route *route = &routes->list[i];
        char what[ROUTE_WHAT_SIZE];
        bool has_body = strcmp(route->method, "POST") == 0 || strcmp(route->method, "PUT") == 0;
        if (route->is_open || (filter != NULL && !filter(route)))
            continue;
        (void)snprintf(what, sizeof what, "%s %.80s", route->method, route->pattern);
        caller_try(
            attempt, what,
            &(struct ask){.method = route->method, .path = route->path, .key = key, .body = has_body ? "{}" : NULL},
            statuses);
    }
}
