/*
 * http: the words of HTTP that every version shares: methods, statuses, header fields. Pure.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

/* The methods we know. Every other one is 501. */
enum http_method {
    METHOD_NONE = 0,
    METHOD_GET,
    METHOD_HEAD,
    METHOD_POST,
    METHOD_PUT,
    METHOD_PATCH,
    METHOD_DELETE,
    METHOD_OPTIONS,
    METHOD_TRACE, /* no path takes it: it would show a page the credentials that its browser adds */
    METHOD_COUNT, /* how many there are */
};

enum { HTTP_HEADERS_MAX = 100 };

/* Neither contains a NUL, a line end or another control character but a tab in a value. */
struct header {
    const char *name;
    const char *value;
};

struct headers {
    struct header items[HTTP_HEADERS_MAX];
    size_t count;
};

const char *http_method_name(enum http_method method);
enum http_method http_method_from(const char *name, size_t length);

/* "Not Found"; "Status" for a number without a name. */
const char *http_status_text(unsigned status);

/* A character of a token (RFC 9110, 5.6.2): what names of headers and methods are made of. */
bool http_is_token_char(unsigned char c);
bool http_is_token(const char *text, size_t length);

/* No control characters but a tab: what may stand in a header's value. */
bool http_is_value(const char *text);

/* The first header of this name, in any case of letters, or NULL; how many there are. */
const char *headers_find(const struct headers *headers, const char *name);
size_t headers_count(const struct headers *headers, const char *name);

/* Does a list such as that of Connection have this word, in any case of letters? All headers of the name are one list.
 */
bool headers_have_word(const struct headers *headers, const char *name, const char *word);

/* A host as it may stand in Host: a name, an IPv4 address or an IPv6 address in brackets, perhaps with a port. */
bool http_is_host(const char *text, size_t length);

/* A content type's essence (before any parameter) is this one. `value` may be NULL. */
bool http_is_type(const char *value, const char *type);
