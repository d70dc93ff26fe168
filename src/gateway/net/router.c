/*
 * Theory of operation. Each pattern is cut into segments once, each with a rank: exact text first, then the parameters
 * from the narrowest shape to the widest, `path` last. Rows are sorted by the ranks of their segments, so the first row
 * that matches is the one the header promises. A match looks at every row with the same beginning; tables have some
 * hundred rows, and a row that does not match is left at its first differing byte.
 */
#include "gateway/net/router.h"

#include <stdlib.h>
#include <string.h>

enum { ID_LENGTH = 26, NAME_LONGEST = 64 };

/* In the order in which they are tried. */
enum segment_kind {
    SEGMENT_EXACT,
    SEGMENT_SB,
    SEGMENT_EX,
    SEGMENT_SNAP,
    SEGMENT_TMPL,
    SEGMENT_ID,
    SEGMENT_PORT,
    SEGMENT_NAME,
    SEGMENT_PATH,
    SEGMENT_KINDS,
};

struct segment {
    enum segment_kind kind;
    const char *text; /* of an exact one; else the parameter's name, which `row` owns */
    size_t length;
};

struct row {
    const struct route *route;
    struct segment segments[ROUTE_SEGMENTS_MAX];
    size_t count;
    char *names; /* of its parameters, each with a NUL */
};

struct router {
    struct row *rows;
    size_t count;
};

static bool is_id_of(const char *prefix, const char *text, size_t length)
{
    size_t front = strlen(prefix);

    if (length != front + ID_LENGTH || memcmp(text, prefix, front) != 0)
        return false;
    for (size_t i = front; i < length; i++) {
        if ((text[i] < '0' || text[i] > '9') && (text[i] < 'a' || text[i] > 'z'))
            return false;
    }
    return true;
}

static bool is_sb(const char *text, size_t length)
{
    return is_id_of("sb_", text, length);
}

static bool is_ex(const char *text, size_t length)
{
    return is_id_of("ex_", text, length);
}

static bool is_snap(const char *text, size_t length)
{
    return is_id_of("snap_", text, length);
}

static bool is_tmpl(const char *text, size_t length)
{
    return is_id_of("tmpl_", text, length);
}

static bool is_id(const char *text, size_t length)
{
    return is_sb(text, length) || is_ex(text, length) || is_snap(text, length) || is_tmpl(text, length);
}

static bool is_port(const char *text, size_t length)
{
    unsigned number = 0;

    if (length == 0 || length > 5 || text[0] == '0')
        return false;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        number = number * 10 + (unsigned)(text[i] - '0');
    }
    return number <= 65535;
}

static bool is_name(const char *text, size_t length)
{
    if (length == 0 || length > NAME_LONGEST || text[0] == '.')
        return false;
    for (size_t i = 0; i < length; i++) {
        char c = text[i];
        if ((c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '.' && c != '_' && c != '-')
            return false;
    }
    return true;
}

static const struct {
    const char *word;
    bool (*fits)(const char *text, size_t length);
} kinds[SEGMENT_KINDS] = {
    [SEGMENT_SB] = {"sb", is_sb},       [SEGMENT_EX] = {"ex", is_ex}, [SEGMENT_SNAP] = {"snap", is_snap},
    [SEGMENT_TMPL] = {"tmpl", is_tmpl}, [SEGMENT_ID] = {"id", is_id}, [SEGMENT_PORT] = {"port", is_port},
    [SEGMENT_NAME] = {"name", is_name}, [SEGMENT_PATH] = {"path", 0},
};

static enum segment_kind kind_from(const char *word, size_t length)
{
    for (enum segment_kind kind = SEGMENT_SB; kind < SEGMENT_KINDS; kind++) {
        if (strlen(kinds[kind].word) == length && memcmp(kinds[kind].word, word, length) == 0)
            return kind;
    }
    return SEGMENT_EXACT;
}

/* `text` is what stands between the braces, NUL included. false: no such type. */
static bool compile_parameter(char *text, struct segment *segment)
{
    char *colon = strchr(text, ':');
    const char *type = colon != NULL ? colon + 1 : text;

    segment->kind = kind_from(type, strlen(type));
    if (colon != NULL)
        *colon = '\0';
    segment->text = text;
    segment->length = strlen(text);
    return segment->kind != SEGMENT_EXACT && segment->length > 0;
}

/* One segment of a pattern; exact ones point into the pattern, parameters into the row's copy of it. */
static bool compile_segment(struct row *row, size_t offset, size_t length)
{
    const char *text = row->route->pattern + offset;
    struct segment *segment = &row->segments[row->count++];

    if (memchr(text, '{', length) == NULL && memchr(text, '}', length) == NULL) {
        *segment = (struct segment){SEGMENT_EXACT, text, length};
        return true;
    }
    if (length < 3 || text[0] != '{' || text[length - 1] != '}')
        return false;
    row->names[offset + length - 1] = '\0';
    return compile_parameter(row->names + offset + 1, segment);
}

static size_t parameters_of(const struct row *row)
{
    size_t count = 0;

    for (size_t i = 0; i < row->count; i++)
        count += row->segments[i].kind != SEGMENT_EXACT;
    return count;
}

static bool compile(struct row *row)
{
    const char *pattern = row->route->pattern;
    size_t length = strlen(pattern);
    size_t start = 1;

    if (pattern[0] != '/')
        return false;
    for (size_t i = 1; i <= length; i++) {
        if (i < length && pattern[i] != '/')
            continue;
        bool after_path = row->count > 0 && row->segments[row->count - 1].kind == SEGMENT_PATH;
        if (row->count == ROUTE_SEGMENTS_MAX || after_path || !compile_segment(row, start, i - start))
            return false;
        start = i + 1;
    }
    return parameters_of(row) <= ROUTE_PARAMETERS_MAX;
}

static int compare_segments(const struct segment *a, const struct segment *b)
{
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    if (a->kind != SEGMENT_EXACT)
        return 0;
    if (a->length != b->length)
        return a->length < b->length ? -1 : 1;
    return memcmp(a->text, b->text, a->length);
}

static int compare_rows(const void *left, const void *right)
{
    const struct row *a = left;
    const struct row *b = right;

    for (size_t i = 0; i < a->count && i < b->count; i++) {
        int order = compare_segments(&a->segments[i], &b->segments[i]);
        if (order != 0)
            return order;
    }
    if (a->count != b->count)
        return a->count < b->count ? -1 : 1;
    return (int)a->route->method - (int)b->route->method;
}

static int add_row(struct router *router, const struct route *route, struct error *err)
{
    struct row *row = &router->rows[router->count];

    *row = (struct row){.route = route, .names = strdup(route->pattern)};
    if (row->names == NULL)
        return error_set(err, ERROR_SYSTEM, ENOMEM, "making the router");
    router->count++;
    if (route->method <= METHOD_NONE || route->method >= METHOD_TRACE || route->handle == NULL || !compile(row))
        return error_set(err, ERROR_INVALID, 0, "route %s %s is malformed", http_method_name(route->method),
                         route->pattern);
    return 0;
}

static int check_rows(const struct router *router, struct error *err)
{
    for (size_t i = 1; i < router->count; i++) {
        const struct route *route = router->rows[i].route;
        if (compare_rows(&router->rows[i - 1], &router->rows[i]) == 0)
            return error_set(err, ERROR_INVALID, 0, "route %s %s is there twice", http_method_name(route->method),
                             route->pattern);
    }
    return 0;
}

static struct router *make_empty(const size_t *counts, size_t table_count)
{
    struct router *router = calloc(1, sizeof *router);
    size_t total = 1;

    for (size_t i = 0; i < table_count; i++)
        total += counts[i];
    if (router == NULL)
        return NULL;
    router->rows = calloc(total, sizeof *router->rows);
    if (router->rows != NULL)
        return router;
    free(router);
    return NULL;
}

int router_new(const struct route *const *tables, const size_t *counts, size_t table_count, struct router **ret_router,
               struct error *err)
{
    struct router *router = make_empty(counts, table_count);
    int r = 0;

    if (router == NULL)
        return error_set(err, ERROR_SYSTEM, ENOMEM, "making the router");
    for (size_t i = 0; r == 0 && i < table_count; i++) {
        for (size_t k = 0; r == 0 && k < counts[i]; k++)
            r = add_row(router, &tables[i][k], err);
    }
    if (r == 0) {
        qsort(router->rows, router->count, sizeof *router->rows, compare_rows);
        r = check_rows(router, err);
    }
    if (r < 0) {
        router_free(router);
        return r;
    }
    *ret_router = router;
    return 0;
}

void router_free(struct router *router)
{
    if (router == NULL)
        return;
    for (size_t i = 0; i < router->count; i++)
        free(router->rows[i].names);
    free(router->rows);
    free(router);
}

static bool fits(const struct segment *segment, const char *text, size_t length)
{
    if (segment->kind == SEGMENT_EXACT)
        return length == segment->length && memcmp(text, segment->text, length) == 0;
    return kinds[segment->kind].fits(text, length);
}

static bool match_row(const struct row *row, const char *path, size_t length,
                      struct route_parameter parameters[ROUTE_PARAMETERS_MAX], size_t *ret_count)
{
    size_t at = 1;
    size_t count = 0;

    for (size_t i = 0; i < row->count; i++) {
        const struct segment *segment = &row->segments[i];
        if (at > length)
            return false;
        const char *slash = memchr(path + at, '/', length - at);
        size_t end = slash == NULL || segment->kind == SEGMENT_PATH ? length : (size_t)(slash - path);
        if (segment->kind == SEGMENT_PATH ? end == at : !fits(segment, path + at, end - at))
            return false;
        if (segment->kind != SEGMENT_EXACT)
            parameters[count++] = (struct route_parameter){segment->text, at, end - at};
        at = end + 1;
    }
    *ret_count = count;
    return at == length + 1;
}

static unsigned bit_of(enum http_method method)
{
    return 1U << method;
}

static unsigned bits_of(enum http_method method)
{
    return bit_of(method) | bit_of(METHOD_OPTIONS) | (method == METHOD_GET ? bit_of(METHOD_HEAD) : 0);
}

static bool serves(const struct route *route, enum http_method method)
{
    return route->method == method || (method == METHOD_HEAD && route->method == METHOD_GET);
}

static void match_all(const struct router *router, struct router_match *match)
{
    for (size_t i = 0; i < router->count; i++)
        match->allow |= bits_of(router->rows[i].route->method);
    match->verdict = ROUTER_OPTIONS;
}

void router_match(const struct router *router, enum http_method method, const char *path, size_t length,
                  struct router_match *ret_match)
{
    struct router_match match = {.verdict = ROUTER_NO_PATH};

    if (method == METHOD_OPTIONS && length == 1 && path[0] == '*')
        match_all(router, &match);
    for (size_t i = 0; i < router->count && length > 0 && path[0] == '/'; i++) {
        const struct row *row = &router->rows[i];
        struct route_parameter parameters[ROUTE_PARAMETERS_MAX] = {0};
        size_t count = 0;
        if (!match_row(row, path, length, parameters, &count))
            continue;
        match.allow |= bits_of(row->route->method);
        if (match.route == NULL && serves(row->route, method)) {
            match.verdict = ROUTER_FOUND;
            match.route = row->route;
            match.parameter_count = count;
            memcpy(match.parameters, parameters, sizeof parameters);
        }
    }
    if (match.route == NULL && match.allow != 0)
        match.verdict = method == METHOD_OPTIONS ? ROUTER_OPTIONS : ROUTER_NO_METHOD;
    *ret_match = match;
}

void router_allow_text(unsigned allow, char text[ROUTER_ALLOW_SIZE])
{
    size_t length = 0;

    text[0] = '\0';
    for (enum http_method method = METHOD_GET; method < METHOD_COUNT; method++) {
        const char *name = http_method_name(method);
        if ((allow & bit_of(method)) == 0)
            continue;
        if (length > 0) {
            memcpy(text + length, ", ", 2);
            length += 2;
        }
        memcpy(text + length, name, strlen(name) + 1);
        length += strlen(name);
    }
}

size_t router_count(const struct router *router)
{
    return router->count;
}

const struct route *router_at(const struct router *router, size_t i)
{
    return i < router->count ? router->rows[i].route : NULL;
}
