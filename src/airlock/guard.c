#include "airlock/guard.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    LINE_MOST = 16384,
    HEADERS_MOST = 40960,
    WORD_MOST = 64, /* no method is longer */
};

void guard_init(struct guard *guard, const struct rules *rules, const char *name, uint16_t port)
{
    *guard = (struct guard){.rules = rules, .port = port};
    (void)snprintf(guard->name, sizeof guard->name, "%s", name);
}

void guard_release(struct guard *guard)
{
    if (guard->http1 != NULL)
        http1_release(guard->http1);
    free(guard->http1);
    guard->http1 = NULL;
}

void guard_set_upgraded(struct guard *guard, bool agreed)
{
    guard->wants_upgrade = false;
    if (agreed)
        guard->kind = GUARD_FREE;
}

static void refuse(struct guard *guard, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void refuse(struct guard *guard, const char *format, ...)
{
    va_list args;

    guard->refused = true;
    va_start(args, format);
    (void)vsnprintf(guard->why, sizeof guard->why, format, args);
    va_end(args);
}

/* A name that the bytes show. */
static void check_shown(struct guard *guard, const char *shown, const char *where)
{
    (void)snprintf(guard->shown, sizeof guard->shown, "%s", shown);
    if (guard->rules == NULL || strcmp(shown, guard->name) == 0)
        return;
    if (rules_mode(guard->rules) != RULES_FULL) {
        refuse(guard, "the connection is to %.160s, but %s says %.160s", guard->name, where, shown);
        return;
    }
    struct rules_verdict verdict = rules_check_name(guard->rules, shown, guard->port);
    if (!verdict.allowed) {
        guard->refused = true;
        rules_explain(&verdict, shown, guard->port, guard->why, sizeof guard->why);
    }
}

/* HOST[:PORT] in a Host or a target. */
static void check_host(struct guard *guard, const char *text, size_t length, const char *where)
{
    char shown[NAME_SIZE];
    struct address address;
    const char *why = "";
    size_t start = 0;
    size_t host = 0;
    uint16_t port = 0;

    if (name_split(text, length, &start, &host, &port) < 0) {
        refuse(guard, "%s is malformed", where);
        return;
    }
    if (address_parse(text + start, host, &address) == 0) {
        char plain[ADDRESS_TEXT_SIZE];
        address_format(&address, plain);
        check_shown(guard, plain, where);
        return;
    }
    if (name_normalize(text + start, host, shown, &why) < 0)
        refuse(guard, "%s is not the name of a host: %s", where, why);
    else
        check_shown(guard, shown, where);
}

static void look_at_hello(struct guard *guard, const uint8_t *held, size_t length)
{
    struct hello hello;

    if (length < guard->needed)
        return;
    switch (hello_read(held, length, &hello)) {
    case HELLO_MORE:
        guard->needed = hello.needed;
        break;
    case HELLO_BAD:
        refuse(guard, "the TLS hello can't be read: %s", hello.why);
        break;
    case HELLO_DONE:
        guard->kind = GUARD_FREE;
        if (guard->rules != NULL && hello.is_encrypted && rules_mode(guard->rules) != RULES_FULL)
            refuse(guard, "the TLS hello hides another one (ECH), which may ask for another name");
        else if (hello.has_name)
            check_shown(guard, hello.name, "the TLS hello");
        break;
    }
}

/* scheme://AUTHORITY/... as a proxy is asked, which a server takes for its Host (RFC 9112, 3.2.2). */
static void check_target(struct guard *guard)
{
    const char *target = guard->http1->target;
    const char *authority = strstr(target, "://");

    if (target[0] == '/' || strcmp(target, "*") == 0)
        return;
    if (authority == NULL) {
        refuse(guard, "the request's target is neither a path nor a URL");
        return;
    }
    authority += 3;
    size_t length = strcspn(authority, "/?#");
    if (memchr(authority, '@', length) != NULL)
        refuse(guard, "the request's target has a user in it");
    else
        check_host(guard, authority, length, "the request's target");
}

static void check_head(struct guard *guard)
{
    struct headers headers;

    http1_headers(guard->http1, &headers);
    guard->wants_upgrade = guard->requests == 0 && headers_have_word(&headers, "Connection", "upgrade") &&
                           headers_find(&headers, "Upgrade") != NULL && !guard->http1->is_chunked &&
                           guard->http1->content_length == 0;
    guard->requests++;
    check_target(guard);
    if (!guard->refused && guard->http1->host[0] != '\0')
        check_host(guard, guard->http1->host, strlen(guard->http1->host), "the Host header");
}

static bool waits_for_server(const struct guard *guard)
{
    return guard->wants_upgrade && guard->is_between;
}

/* From the first byte that was not looked at on. How many of all the held bytes are cleared. */
static size_t look_at_requests(struct guard *guard, const uint8_t *held, size_t length)
{
    const uint8_t *at = held + guard->looked;
    size_t left = length - guard->looked;
    size_t cleared = 0;
    struct http1_event event = {.type = HTTP1_BODY};

    while (event.type != HTTP1_MORE && !guard->refused) {
        http1_next(guard->http1, &at, &left, &event);
        if (event.type == HTTP1_BAD)
            refuse(guard, "the HTTP request can't be read: %s", event.reason);
        if (event.type == HTTP1_HEAD) {
            check_head(guard);
            guard->is_between = false;
        }
        if (event.type == HTTP1_END) {
            http1_reset(guard->http1);
            guard->is_between = true;
        }
        if (!guard->refused && (!guard->is_between || event.type == HTTP1_END))
            cleared = (size_t)(at - held);
        /* What comes next is for the server to say: HTTP, or what it was asked to change to. */
        if (waits_for_server(guard))
            break;
    }
    guard->looked = (size_t)(at - held) - cleared;
    return cleared;
}

static void begin_http(struct guard *guard)
{
    static const struct http1_limits limits = {LINE_MOST, HEADERS_MOST};

    guard->http1 = malloc(sizeof *guard->http1);
    if (guard->http1 == NULL) {
        refuse(guard, "there is no memory to read the request");
        return;
    }
    http1_init(guard->http1, &limits);
    guard->http1->any_method = true;
    guard->kind = GUARD_HTTP;
    guard->was_http = true;
    guard->is_between = true;
}

/* As isspace(): what some server takes for the end of a word. */
static bool is_blank(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Has the line a word that starts with HTTP/ behind a blank? So every server that takes it for a request sees it. */
static bool has_version(const uint8_t *line, size_t length)
{
    for (size_t i = 0; i + 6 <= length; i++) {
        if (is_blank(line[i]) && strncasecmp((const char *)line + i + 1, "HTTP/", 5) == 0)
            return true;
    }
    return false;
}

/* A word and a blank start the line: an HTTP request, or a line of many another protocol. Known at its end. */
static void find_kind_of_line(struct guard *guard, const uint8_t *line, size_t length)
{
    const uint8_t *end = memchr(line, '\n', length);
    size_t word = 0;

    while (word < length && word <= WORD_MOST && http_is_token_char(line[word]))
        word++;
    if (word == length && word <= WORD_MOST)
        return;
    bool is_word = word > 0 && word <= WORD_MOST && is_blank(line[word]);
    if (!is_word || (end != NULL && !has_version(line, (size_t)(end - line))))
        guard->kind = GUARD_FREE;
    else if (end != NULL)
        begin_http(guard);
    else if (length > LINE_MOST)
        refuse(guard, "what was sent may be an HTTP request, but its first line does not end");
}

static void find_kind(struct guard *guard, const uint8_t *held, size_t length)
{
    size_t start = 0;

    if (length > 0 && held[0] == 0x16) {
        if (length > 1)
            guard->kind = held[1] == 3 ? GUARD_TLS : GUARD_FREE;
        guard->was_tls = guard->kind == GUARD_TLS;
        return;
    }
    /* Servers skip empty lines before a request, and some of them blanks. */
    while (start < length && is_blank(held[start]))
        start++;
    if (start < length)
        find_kind_of_line(guard, held + start, length - start);
    else if (start > WORD_MOST)
        refuse(guard, "what was sent has too many empty lines");
}

size_t guard_look(struct guard *guard, const uint8_t *held, size_t length)
{
    size_t cleared = 0;

    if (guard->refused || waits_for_server(guard))
        return 0;
    if (guard->kind == GUARD_UNKNOWN)
        find_kind(guard, held, length);
    if (guard->kind == GUARD_TLS)
        look_at_hello(guard, held, length);
    if (guard->kind == GUARD_HTTP && !guard->refused)
        cleared = look_at_requests(guard, held, length);
    return guard->kind == GUARD_FREE && !guard->refused ? length : cleared;
}
