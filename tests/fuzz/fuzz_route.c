/*
 * A request target, from its bytes to the row that serves it: the first byte is the method, the rest the target.
 */
#include "fuzz.h"
#include "gateway/net/router.h"
#include "gateway/net/target.h"

#include <string.h>

static void handle(struct request *request)
{
    (void)request;
}

#define ROW(row_method, row_pattern)                                                                                   \
    {                                                                                                                  \
        .method = METHOD_##row_method, .pattern = (row_pattern), .handle = handle                                      \
    }

static const struct route table[] = {
    ROW(GET, "/"),
    ROW(POST, "/s"),
    ROW(GET, "/s/{id:sb}"),
    ROW(DELETE, "/s/{id}"),
    ROW(GET, "/s/{name}"),
    ROW(POST, "/s/cleanup"),
    ROW(PUT, "/s/{id:sb}/files/{path}"),
    ROW(GET, "/s/{id:sb}/ports/{port}/{rest:path}"),
    ROW(GET, "/s/{id:sb}/x/{eid:ex}/output"),
};

static struct router *make_router(void)
{
    static struct router *router;
    const struct route *tables[] = {table};
    const size_t counts[] = {sizeof table / sizeof *table};
    struct error err;

    if (router == NULL)
        MUST(router_new(tables, counts, 1, &router, &err) == 0);
    return router;
}

/* As a file system would read it, or a second decoder. */
static void check_path(const char *path, size_t length)
{
    MUST(strlen(path) == length);
    MUST(path[0] == '/' || strcmp(path, "*") == 0);
    for (const char *at = path; at != NULL; at = strchr(at + 1, '/')) {
        size_t segment = strcspn(at + 1, "/");
        MUST(path[0] == '*' || segment != 1 || at[1] != '.');
        MUST(path[0] == '*' || segment != 2 || at[1] != '.' || at[2] != '.');
    }
}

static void check_match(const struct router_match *match, const char *path, size_t length)
{
    MUST(match->parameter_count <= ROUTE_PARAMETERS_MAX);
    MUST((match->verdict == ROUTER_FOUND) == (match->route != NULL));
    MUST((match->verdict == ROUTER_NO_PATH) == (match->allow == 0));
    for (size_t i = 0; i < match->parameter_count; i++) {
        const struct route_parameter *parameter = &match->parameters[i];
        MUST(parameter->offset > 0 && parameter->length > 0 && parameter->offset + parameter->length <= length);
        /* Only a path has separators in it, and it goes to the end. */
        if (memchr(path + parameter->offset, '/', parameter->length) != NULL)
            MUST(parameter->offset + parameter->length == length && i + 1 == match->parameter_count);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = arena_init(16384);
    struct target target;
    struct router_match match;
    char allow[ROUTER_ALLOW_SIZE];

    if (size == 0)
        return 0;
    enum http_method method = 1 + data[0] % (METHOD_COUNT - 1);
    if (target_parse((const char *)data + 1, size - 1, &arena, &target) == 0) {
        check_path(target.path, target.path_length);
        MUST(target.query_count <= TARGET_PARAMETERS_MAX && target.path_length < size);
        for (size_t i = 0; i < target.query_count; i++)
            MUST(strlen(target.query[i].name) + strlen(target.query[i].value) < size);
        router_match(make_router(), method, target.path, target.path_length, &match);
        check_match(&match, target.path, target.path_length);
        router_allow_text(match.allow, allow);
    }
    arena_release(&arena);
    return 0;
}
