#include "airlock/guard.h"

#include "airlock/http_peek.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    HEADERS_MOST = 40960,
    POSTGRES_BYTES = 8,
    SWITCHING_BYTES = 12,
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

static void check_hello(struct guard *guard, const struct hello *hello)
{
    if (guard->rules != NULL && hello->is_encrypted && rules_mode(guard->rules) != RULES_FULL)
        refuse(guard, "the TLS hello hides another one (ECH), which may ask for another name");
    else if (hello->has_name)
        check_shown(guard, hello->name, "the TLS hello");
}

/* How many bytes are cleared. */
static size_t look_at_hello(struct guard *guard, const uint8_t *held, size_t length)
{
    struct hello hello;

    if (length < guard->needed)
        return 0;
    switch (hello_read(held, length, &hello)) {
    case HELLO_MORE:
        guard->needed = hello.needed;
        return 0;
    case HELLO_BAD:
        refuse(guard, "the TLS hello can't be read: %s", hello.why);
        return 0;
    case HELLO_DONE:
        break;
    }
    guard->needed = 0;
    check_hello(guard, &hello);
    /* A server asks for a second hello at most once (RFC 8446, 4.1.4). */
    if (guard->kind == GUARD_RETRY)
        guard->kind = GUARD_FREE;
    else
        guard->waits = GUARD_ANSWER;
    return hello.used;
}

/* The second hello may have another name than the first: it is for the server to mind that, and not all of them do. */
static size_t look_at_retry(struct guard *guard, const uint8_t *held, size_t length)
{
    ssize_t skipped = hello_skip(held, length);

    if (skipped < 0) {
        refuse(guard, "what follows the first TLS hello is not the second");
        return 0;
    }
    size_t start = (size_t)skipped;
    if (start == length || held[start] != 0x16)
        return start;
    return start + look_at_hello(guard, held + start, length - start);
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
    /* Nothing else may follow: HTTP/2 and TLS, to which a server may change as well, name a server of their own. */
    guard->wants_upgrade = guard->requests == 0 && headers_have_word(&headers, "Connection", "upgrade") &&
                           headers_count(&headers, "Upgrade") == 1 &&
                           strcasecmp(headers_find(&headers, "Upgrade"), "websocket") == 0 &&
                           !guard->http1->is_chunked && guard->http1->content_length == 0;
    guard->requests++;
    check_target(guard);
    if (!guard->refused && guard->http1->host[0] != '\0')
        check_host(guard, guard->http1->host, strlen(guard->http1->host), "the Host header");
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
            guard->waits = guard->wants_upgrade ? GUARD_UPGRADE : GUARD_NOTHING;
            guard->wants_upgrade = false;
        }
        if (!guard->refused && (!guard->is_between || event.type == HTTP1_END))
            cleared = (size_t)(at - held);
        /* What comes next is for the server to say: HTTP, or what it was asked to change to. */
        if (guard->waits != GUARD_NOTHING)
            break;
    }
    guard->looked = (size_t)(at - held) - cleared;
    return cleared;
}

static void begin_http(struct guard *guard)
{
    static const struct http1_limits limits = {HTTP_PEEK_LINE_MOST, HEADERS_MOST};

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

static void find_kind_of_line(struct guard *guard, const uint8_t *held, size_t length, bool has_end)
{
    size_t ahead = 0;

    switch (http_peek(held, length, has_end, &ahead)) {
    case HTTP_PEEK_MORE:
        guard->ahead = ahead;
        break;
    case HTTP_PEEK_OTHER:
        guard->kind = GUARD_FREE;
        break;
    case HTTP_PEEK_REQUEST:
        begin_http(guard);
        break;
    case HTTP_PEEK_BARE:
        guard->was_http = true;
        refuse(guard, "the HTTP request has no version");
        break;
    case HTTP_PEEK_ENDLESS:
        refuse(guard, "what was sent may be an HTTP request, but its first line does not end");
        break;
    }
}

/*
 * The first byte of a record of TLS, 20 to 24. What comes before a hello is refused, because there are servers that
 * pass over it; so is a version that there is not, because there are servers that do not look at it.
 */
static void find_kind_of_record(struct guard *guard, const uint8_t *held, size_t length, bool has_end)
{
    enum { ALERT = 21, HANDSHAKE = 22, VERSION_MOST = 15 };
    bool may_start = held[0] == ALERT || held[0] == HANDSHAKE;

    if (length < 2) {
        guard->kind = has_end ? GUARD_FREE : GUARD_UNKNOWN;
        return;
    }
    if (held[1] != 3 && (!may_start || held[1] > VERSION_MOST)) {
        guard->kind = GUARD_FREE;
        return;
    }
    guard->was_tls = true;
    if (held[0] == HANDSHAKE)
        guard->kind = GUARD_TLS;
    else
        refuse(guard, "the TLS connection does not begin with a hello");
}

/* May it be the offer to go on in TLS, or in GSSAPI, that PostgreSQL's clients begin with? */
static bool is_postgres(const uint8_t *held, size_t length)
{
    static const uint8_t tls[POSTGRES_BYTES] = {0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f};
    static const uint8_t gss[POSTGRES_BYTES] = {0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x30};
    size_t count = length < POSTGRES_BYTES ? length : POSTGRES_BYTES;

    return memcmp(held, tls, count) == 0 || memcmp(held, gss, count) == 0;
}

/* How many bytes are cleared. */
static size_t find_kind(struct guard *guard, const uint8_t *held, size_t length, bool has_end)
{
    guard->ahead = 0;
    if (length == 0)
        return 0;
    if (is_postgres(held, length)) {
        if (length < POSTGRES_BYTES) {
            guard->kind = has_end ? GUARD_FREE : GUARD_UNKNOWN;
            return 0;
        }
        guard->waits = GUARD_OFFER;
        return POSTGRES_BYTES;
    }
    if (held[0] >= 20 && held[0] <= 24)
        find_kind_of_record(guard, held, length, has_end);
    else
        find_kind_of_line(guard, held, length, has_end);
    return 0;
}

static size_t look(struct guard *guard, const uint8_t *held, size_t length, bool has_end)
{
    size_t cleared = 0;

    if (guard->refused || guard->waits != GUARD_NOTHING)
        return 0;
    if (guard->is_unanswered && length > 0)
        refuse(guard, "the server does not answer the TLS hello in TLS");
    if (guard->kind == GUARD_UNKNOWN)
        cleared = find_kind(guard, held, length, has_end);
    if (guard->kind == GUARD_TLS && !guard->refused)
        cleared = look_at_hello(guard, held, length);
    else if (guard->kind == GUARD_RETRY)
        cleared = look_at_retry(guard, held, length);
    else if (guard->kind == GUARD_HTTP && !guard->refused)
        cleared = look_at_requests(guard, held, length);
    /* Its first line went ahead, and there are servers that take an end for the end of the line. */
    if (guard->kind == GUARD_HTTP && has_end && guard->requests == 0 && !guard->refused)
        refuse(guard, "the HTTP request ends before its head does");
    if (guard->refused)
        return guard->kind == GUARD_HTTP ? cleared : 0;
    if (guard->kind == GUARD_FREE)
        cleared = length;
    guard->ahead = guard->ahead > cleared ? guard->ahead - cleared : 0;
    return cleared;
}

size_t guard_look(struct guard *guard, const uint8_t *held, size_t length)
{
    return look(guard, held, length, false);
}

size_t guard_look_last(struct guard *guard, const uint8_t *held, size_t length)
{
    return look(guard, held, length, true);
}

static void hear_offer(struct guard *guard, uint8_t answer)
{
    guard->waits = GUARD_NOTHING;
    if (answer == 'S') {
        guard->kind = GUARD_TLS;
        guard->was_tls = true;
    } else if (answer == 'G') {
        guard->kind = GUARD_FREE;
    }
}

static void hear_answer(struct guard *guard, const uint8_t *first, size_t length)
{
    enum hello_answer answer = hello_read_answer(first, length);

    if (answer == HELLO_ANSWER_MORE)
        return;
    guard->waits = GUARD_NOTHING;
    if (answer == HELLO_ANSWER_DONE)
        guard->kind = GUARD_FREE;
    else if (answer == HELLO_ANSWER_RETRY)
        guard->kind = GUARD_RETRY;
    else
        guard->is_unanswered = true;
}

void guard_hear(struct guard *guard, const uint8_t *first, size_t length)
{
    switch (guard->waits) {
    case GUARD_NOTHING:
        break;
    case GUARD_UPGRADE:
        if (length < SWITCHING_BYTES)
            break;
        guard->waits = GUARD_NOTHING;
        if (memcmp(first, "HTTP/1.1 101", SWITCHING_BYTES) == 0)
            guard->kind = GUARD_FREE;
        break;
    case GUARD_OFFER:
        if (length > 0)
            hear_offer(guard, first[0]);
        break;
    case GUARD_ANSWER:
        hear_answer(guard, first, length);
        break;
    }
}
