/*
 * The router against api/openapi.yaml, in both directions: what is served is written down, and what is written down is
 * served, with the methods and the credentials that it says.
 */
#include "gateway/config/config.h"
#include "gateway/surface/call.h"
#include "gateway/surface/routes.h"
#include "test.h"

#include <libfyaml.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const methods[] = {"get", "put", "post", "delete"};

struct world {
    struct route *routes;
    struct router *router;
    struct fy_document *document;
    struct fy_node *paths;
};

static int set_up(void **state)
{
    static struct config config = {.server = {.max_body_mb = 7}};
    struct world *world = calloc(1, sizeof *world);
    struct error err = {0};

    assert_non_null(world);
    assert_int_equal(routes_make(&config, &world->routes, &world->router, &err), 0);
    world->document = fy_document_build_from_file(NULL, HUTCH_SOURCE "/api/openapi.yaml");
    assert_non_null(world->document);
    world->paths = fy_node_by_path(fy_document_root(world->document), "/paths", FY_NT, FYNWF_DONT_FOLLOW);
    assert_non_null(world->paths);
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;

    fy_document_destroy(world->document);
    router_free(world->router);
    free(world->routes);
    free(world);
    return 0;
}

/* {id:sb} of a pattern is {id} in the file. */
static void plain(const char *pattern, char *path)
{
    bool is_type = false;

    for (; *pattern != '\0'; pattern++) {
        if (*pattern == ':')
            is_type = true;
        if (*pattern == '}')
            is_type = false;
        if (!is_type)
            *path++ = *pattern;
    }
    *path = '\0';
}

static struct fy_node *operation_of(const struct world *world, const char *path, const char *method)
{
    struct fy_node *item = fy_node_mapping_lookup_by_string(world->paths, path, FY_NT);

    return item == NULL ? NULL : fy_node_mapping_lookup_by_string(item, method, FY_NT);
}

static const char *lower(enum http_method method)
{
    for (size_t i = 0; i < COUNT(methods); i++) {
        if (strcasecmp(methods[i], http_method_name(method)) == 0)
            return methods[i];
    }
    return "?";
}

static void what_is_served_is_written_down(void **state)
{
    const struct world *world = *state;

    for (size_t i = 0; i < router_count(world->router); i++) {
        const struct route *route = router_at(world->router, i);
        char path[256];
        plain(route->pattern, path);
        struct fy_node *operation = operation_of(world, path, lower(route->method));
        assert_row(route->pattern, operation != NULL);
        /* `security: []` is for those that anybody may call, and for no others. */
        bool is_open = fy_node_mapping_lookup_by_string(operation, "security", FY_NT) != NULL;
        assert_row(route->pattern, is_open == (route->scope == CALL_OPEN));
        bool has_body = fy_node_mapping_lookup_by_string(operation, "requestBody", FY_NT) != NULL;
        assert_row(route->pattern, has_body == (route->body != ROUTE_NO_BODY));
    }
}

static const struct route *find_route(const struct world *world, const char *path, const char *method)
{
    for (size_t i = 0; i < router_count(world->router); i++) {
        const struct route *route = router_at(world->router, i);
        char written[256];
        plain(route->pattern, written);
        if (strcmp(written, path) == 0 && strcmp(lower(route->method), method) == 0)
            return route;
    }
    return NULL;
}

static void what_is_written_down_is_served(void **state)
{
    const struct world *world = *state;
    struct fy_node_pair *pair;
    void *iterator = NULL;
    size_t count = 0;

    while ((pair = fy_node_mapping_iterate(world->paths, &iterator)) != NULL) {
        const char *path = fy_node_get_scalar0(fy_node_pair_key(pair));
        for (size_t i = 0; i < COUNT(methods); i++) {
            if (fy_node_mapping_lookup_by_string(fy_node_pair_value(pair), methods[i], FY_NT) == NULL)
                continue;
            count++;
            if (find_route(world, path, methods[i]) == NULL)
                fail_msg("%s %s is in openapi.yaml and has no route", methods[i], path);
        }
    }
    assert_int_equal(count, router_count(world->router));
}

static void bodies_have_the_configured_cap(void **state)
{
    const struct world *world = *state;
    const struct route *route = find_route(world, "/api/v1/sandboxes", "post");

    assert_non_null(route);
    assert_int_equal(route->body_cap, 7 << 20);
}

static void every_call_has_a_name_in_the_audit_log(void **state)
{
    const struct world *world = *state;

    for (size_t i = 0; i < router_count(world->router); i++) {
        const struct call_kind *kind = router_at(world->router, i)->extra;
        assert_true(kind != NULL && kind->action != NULL && *kind->action != '\0');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_served_is_written_down),
        cmocka_unit_test(what_is_written_down_is_served),
        cmocka_unit_test(bodies_have_the_configured_cap),
        cmocka_unit_test(every_call_has_a_name_in_the_audit_log),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
