/*
 * router: which row of a table serves a method and a path. Pure: no I/O, no memory of its own but a checked copy of
 * the table's patterns, made once.
 *
 * A pattern is an exact path whose segments may be parameters: `{name}` or `{name:type}`; without a type the name is
 * the type. A segment that does not have its type's shape does not match, so it is 404.
 *
 *   id    any of the ids below          sb, ex, snap, tmpl   that prefix, `_`, 26 of 0-9 and a-z
 *   port  1 to 65535, no leading zero   name                 1 to 64 of A-Z a-z 0-9 . _ -, starting with no dot
 *   path  the rest of the path, slashes and all, at least one byte; last in its pattern
 *
 * Where two rows match, the one whose first differing segment is exact wins, then the one that is not `path`: so
 * `containers/cleanup` wins over `containers/{id}` wherever they stand in the table.
 */
#pragma once

#include "base/error.h"
#include "gateway/net/http.h"

#include <stdint.h>

struct request;
struct router;

enum {
    ROUTE_PARAMETERS_MAX = 4,
    ROUTE_SEGMENTS_MAX = 12,
};

enum route_body {
    ROUTE_NO_BODY = 0, /* what comes is dropped, as long as it is small */
    ROUTE_JSON,        /* collected up to the cap; 415 when there is one and it is not application/json */
    ROUTE_BYTES,       /* collected up to the cap, of any type */
    ROUTE_STREAM,      /* handed to the handler piece by piece, up to the cap */
};

struct route {
    enum http_method method; /* a GET row serves HEAD too */
    const char *pattern;
    enum route_body body;
    uint64_t body_cap; /* bytes; 0 with a body: none but an empty one */
    void (*handle)(struct request *request);
    unsigned scope;    /* what a caller must be allowed: the surface's word */
    unsigned flags;    /* the surface's own */
    const void *extra; /* the surface's own */
};

struct route_parameter {
    const char *name; /* as in the pattern */
    size_t offset;    /* into the path */
    size_t length;
};

enum router_verdict {
    ROUTER_FOUND,
    ROUTER_NO_PATH,   /* 404 */
    ROUTER_NO_METHOD, /* 405 with `allow` */
    ROUTER_OPTIONS,   /* OPTIONS for a path that has no row of its own for it: 204 with `allow` */
};

struct router_match {
    enum router_verdict verdict;
    const struct route *route; /* FOUND */
    struct route_parameter parameters[ROUTE_PARAMETERS_MAX];
    size_t parameter_count;
    unsigned allow; /* bit 1 << method for each that the path takes, HEAD and OPTIONS included */
};

/* Room for the longest Allow. */
enum { ROUTER_ALLOW_SIZE = 64 };

/*
 * The tables must outlive the router. ERROR_INVALID for a pattern that is malformed, has too many segments, or a row
 * that no request could reach because another has the same method and shape.
 */
_must_use_ int router_new(const struct route *const *tables, const size_t *counts, size_t table_count,
                          struct router **ret_router, struct error *err);
void router_free(struct router *router);

/* `path` is decoded and may contain any byte but NUL. */
void router_match(const struct router *router, enum http_method method, const char *path, size_t length,
                  struct router_match *ret_match);

/* "GET, HEAD, OPTIONS" */
void router_allow_text(unsigned allow, char text[ROUTER_ALLOW_SIZE]);

/* Every row, for the test that holds the table against the OpenAPI file. */
size_t router_count(const struct router *router);
const struct route *router_at(const struct router *router, size_t i);
