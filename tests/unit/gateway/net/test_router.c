#include "gateway/net/router.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

#define ID26 "abcdefghijklmnopqrstuvwxyz"

static void handle(struct request *request)
{
    (void)request;
}

#define ROW(row_method, row_pattern)                                                                                   \
    {                                                                                                                  \
        .method = METHOD_##row_method, .pattern = (row_pattern), .handle = handle                                      \
    }

/* The general ones first: the order of a table means nothing. */
static const struct route first[] = {
    ROW(GET, "/files/{path}"),
    ROW(GET, "/c/{name}"),
    ROW(DELETE, "/c/{id}"),
    ROW(GET, "/c/{id:sb}"),
    ROW(POST, "/c/cleanup"),
    ROW(GET, "/c/{id:sb}/files/{path}"),
    ROW(PUT, "/c/{id:sb}/files/{path}"),
    ROW(GET, "/c/{id:sb}/ports/{port}/{rest:path}"),
    ROW(GET, "/c/{id:sb}/x/{eid:ex}"),
};

static const struct route second[] = {
    ROW(GET, "/"),        ROW(GET, "/c"), ROW(POST, "/c"), ROW(DELETE, "/api/sandbox"), ROW(GET, "/api/sandbox/config"),
    ROW(OPTIONS, "/own"),
};

static struct router *make(void)
{
    const struct route *tables[] = {first, second};
    const size_t counts[] = {COUNT(first), COUNT(second)};
    struct router *router = NULL;
    struct error err = {0};

    assert_int_equal(router_new(tables, counts, 2, &router, &err), 0);
    return router;
}

/* "GET /c/{id:sb} id=sb_x", or the verdict and what is allowed. */
static const char *match(const struct router *router, enum http_method method, const char *path)
{
    static char text[512];
    char allow[ROUTER_ALLOW_SIZE];
    struct router_match found;
    int n = 0;

    router_match(router, method, path, strlen(path), &found);
    router_allow_text(found.allow, allow);
    if (found.verdict != ROUTER_FOUND) {
        (void)snprintf(text, sizeof text, "%s%s",
                       found.verdict == ROUTER_NO_PATH     ? "404"
                       : found.verdict == ROUTER_NO_METHOD ? "405 "
                                                           : "options ",
                       allow);
        assert_null(found.route);
        return text;
    }
    n = snprintf(text, sizeof text, "%s %s", http_method_name(found.route->method), found.route->pattern);
    for (size_t i = 0; i < found.parameter_count; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, " %s=%.*s", found.parameters[i].name,
                      (int)found.parameters[i].length, path + found.parameters[i].offset);
    return text;
}

TEST(rows_are_found)
{
    static const struct {
        enum http_method method;
        const char *path;
        const char *expected;
    } rows[] = {
        {METHOD_GET, "/", "GET /"},
        {METHOD_GET, "/c", "GET /c"},
        {METHOD_HEAD, "/c", "GET /c"},
        {METHOD_POST, "/c", "POST /c"},
        {METHOD_PUT, "/c", "405 GET, HEAD, POST, OPTIONS"},
        {METHOD_TRACE, "/c", "405 GET, HEAD, POST, OPTIONS"},
        {METHOD_OPTIONS, "/c", "options GET, HEAD, POST, OPTIONS"},
        {METHOD_OPTIONS, "/own", "OPTIONS /own"},
        {METHOD_GET, "/own", "405 OPTIONS"},
        {METHOD_OPTIONS, "*", "options GET, HEAD, POST, PUT, DELETE, OPTIONS"},
        {METHOD_GET, "*", "404"},
        {METHOD_GET, "/c/", "404"},
        {METHOD_GET, "//c", "404"},
        {METHOD_GET, "/C", "404"},
        {METHOD_GET, "", "404"},
        {METHOD_GET, "c", "404"},
        {METHOD_POST, "/c/cleanup", "POST /c/cleanup"},
        {METHOD_GET, "/c/cleanup", "GET /c/{name} name=cleanup"},
        {METHOD_GET, "/c/sb_" ID26, "GET /c/{id:sb} id=sb_" ID26},
        {METHOD_DELETE, "/c/sb_" ID26, "DELETE /c/{id} id=sb_" ID26},
        {METHOD_DELETE, "/c/tmpl_" ID26, "DELETE /c/{id} id=tmpl_" ID26},
        {METHOD_GET, "/c/ex_" ID26, "GET /c/{name} name=ex_" ID26},
        {METHOD_PUT, "/c/sb_" ID26, "405 GET, HEAD, DELETE, OPTIONS"},
        {METHOD_DELETE, "/c/sb_" ID26 "a", "405 GET, HEAD, OPTIONS"},
        {METHOD_DELETE, "/c/sb_Abcdefghijklmnopqrstuvwxyz", "405 GET, HEAD, OPTIONS"},
        {METHOD_GET, "/c/sb_" ID26 "/files/a", "GET /c/{id:sb}/files/{path} id=sb_" ID26 " path=a"},
        {METHOD_PUT, "/c/sb_" ID26 "/files//a//b/", "PUT /c/{id:sb}/files/{path} id=sb_" ID26 " path=/a//b/"},
        {METHOD_GET, "/c/sb_" ID26 "/files/", "404"},
        {METHOD_GET, "/c/sb_" ID26 "/files", "404"},
        {METHOD_GET, "/c/ex_" ID26 "/files/a", "404"},
        {METHOD_GET, "/c/sb_" ID26 "/x/ex_" ID26, "GET /c/{id:sb}/x/{eid:ex} id=sb_" ID26 " eid=ex_" ID26},
        {METHOD_GET, "/c/sb_" ID26 "/ports/80/x/y",
         "GET /c/{id:sb}/ports/{port}/{rest:path} id=sb_" ID26 " port=80 rest=x/y"},
        {METHOD_GET, "/c/sb_" ID26 "/ports/65535/x",
         "GET /c/{id:sb}/ports/{port}/{rest:path} id=sb_" ID26 " port=65535 rest=x"},
        {METHOD_GET, "/c/sb_" ID26 "/ports/65536/x", "404"},
        {METHOD_GET, "/c/sb_" ID26 "/ports/0/x", "404"},
        {METHOD_GET, "/c/sb_" ID26 "/ports/080/x", "404"},
        {METHOD_GET, "/c/sb_" ID26 "/ports//x", "404"},
        {METHOD_GET, "/c/.hidden", "404"},
        {METHOD_GET, "/c/a b", "404"},
        {METHOD_GET, "/c/a.b-c_D9", "GET /c/{name} name=a.b-c_D9"},
        {METHOD_DELETE, "/api/sandbox", "DELETE /api/sandbox"},
        {METHOD_DELETE, "/api/sandbox/config", "405 GET, HEAD, OPTIONS"},
        {METHOD_GET, "/api/sandbox", "405 DELETE, OPTIONS"},
    };
    struct router *router = make();

    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *found = match(router, rows[i].method, rows[i].path);
        if (strcmp(found, rows[i].expected) != 0)
            fail_msg("%s: %s, not %s", rows[i].path, found, rows[i].expected);
    }
    assert_int_equal(router_count(router), COUNT(first) + COUNT(second));
    for (size_t i = 0; i < router_count(router); i++)
        assert_non_null(router_at(router, i));
    assert_null(router_at(router, router_count(router)));
    router_free(router);
}

TEST(malformed_tables)
{
    static const struct route bad[] = {
        ROW(GET, ""),
        ROW(GET, "x"),
        ROW(GET, "/{what}"),
        ROW(GET, "/{a:b}"),
        ROW(GET, "/{}"),
        ROW(GET, "/{:id}"),
        ROW(GET, "/{id"),
        ROW(GET, "/a{id}"),
        ROW(GET, "/{id}b"),
        ROW(GET, "/}"),
        ROW(GET, "/{path}/x"),
        ROW(GET, "/{id}/{id}/{id}/{id}/{id}"),
        ROW(GET, "/1/2/3/4/5/6/7/8/9/10/11/12/13"),
        ROW(NONE, "/x"),
        {.method = METHOD_GET, .pattern = "/no-handler"},
    };

    for (size_t i = 0; i < COUNT(bad); i++) {
        const struct route *tables[] = {&bad[i]};
        const size_t counts[] = {1};
        struct router *router = NULL;
        struct error err = {0};
        assert_row(bad[i].pattern, router_new(tables, counts, 1, &router, &err) < 0);
        assert_row(bad[i].pattern, router == NULL && strstr(err.message, bad[i].pattern) != NULL);
    }
    /* The name of a parameter is no difference. */
    static const struct route twice[] = {ROW(GET, "/x/{id:sb}"), ROW(POST, "/x/{sb}"), ROW(GET, "/x/{other:sb}")};
    const struct route *tables[] = {twice};
    const size_t counts[] = {3};
    struct router *router = NULL;
    struct error err = {0};
    assert_true(router_new(tables, counts, 1, &router, &err) < 0);
    assert_non_null(strstr(err.message, "twice"));
    router_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_found),
        cmocka_unit_test(malformed_tables),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
