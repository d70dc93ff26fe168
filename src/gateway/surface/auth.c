#include "gateway/surface/auth.h"

#include <arpa/inet.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { HOST_SIZE = 256 };

static void malformed(struct auth_claim *claim)
{
    auth_forget(claim);
    claim->kind = AUTH_MALFORMED;
}

static void take_key(struct auth_claim *claim, const char *secret)
{
    size_t length = strlen(secret);

    if (length == 0 || length > AUTH_SECRET_MAX) {
        malformed(claim);
        return;
    }
    memcpy(claim->secret, secret, length + 1);
    claim->length = length;
    claim->kind = AUTH_KEY;
}

/* RFC 7617: base64 of user:password; ours has one user. */
static void take_basic(struct auth_claim *claim, const char *text)
{
    static const char user[] = "admin:";
    static const size_t user_length = sizeof user - 1;
    size_t length = 0;
    const char *end = NULL;

    if (sodium_base642bin((unsigned char *)claim->secret, AUTH_SECRET_MAX, text, strlen(text), NULL, &length, &end,
                          sodium_base64_VARIANT_ORIGINAL) < 0 ||
        *end != '\0' || length < user_length || memcmp(claim->secret, user, user_length) != 0 ||
        memchr(claim->secret, '\0', length) != NULL) {
        malformed(claim);
        return;
    }
    memmove(claim->secret, claim->secret + user_length, length - user_length);
    claim->length = length - user_length;
    claim->secret[claim->length] = '\0';
    claim->kind = AUTH_PASSWORD;
}

/* What follows the scheme and its blanks, or NULL when it is another scheme. */
static const char *after_scheme(const char *value, const char *scheme)
{
    size_t length = strlen(scheme);

    if (strncasecmp(value, scheme, length) != 0 || value[length] != ' ')
        return NULL;
    return value + length + strspn(value + length, " ");
}

void auth_read(const struct headers *headers, struct auth_claim *ret_claim)
{
    const char *authorization = headers_find(headers, "authorization");
    const char *key = headers_find(headers, "x-api-key");
    const char *rest;

    ret_claim->kind = AUTH_NONE;
    ret_claim->length = 0;
    if (headers_count(headers, "authorization") > 1 || headers_count(headers, "x-api-key") > 1)
        malformed(ret_claim);
    else if (authorization != NULL && (rest = after_scheme(authorization, "Bearer")) != NULL)
        take_key(ret_claim, rest);
    else if (authorization != NULL && (rest = after_scheme(authorization, "Basic")) != NULL)
        take_basic(ret_claim, rest);
    else if (authorization != NULL)
        malformed(ret_claim);
    else if (key != NULL)
        take_key(ret_claim, key);
}

void auth_forget(struct auth_claim *claim)
{
    sodium_memzero(claim->secret, sizeof claim->secret);
    claim->length = 0;
}

/* The host without its port and without the brackets of an IPv6 address. */
static int bare_host(const char *text, char host[HOST_SIZE])
{
    bool is_bracketed = *text == '[';
    size_t length = is_bracketed ? strcspn(++text, "]") : strcspn(text, ":");

    if (length == 0 || length >= HOST_SIZE)
        return -EINVAL;
    memcpy(host, text, length);
    host[length] = '\0';
    return 0;
}

static bool is_address(const char *host)
{
    struct in6_addr address;

    return inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1;
}

static bool is_every_address(const char *host)
{
    return strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0;
}

static bool is_listened_on(const struct config_list *listen, const char *host)
{
    char listener[HOST_SIZE];

    for (size_t i = 0; i < listen->count; i++) {
        if (bare_host(listen->items[i], listener) < 0)
            continue;
        if (strcasecmp(listener, host) == 0 || (is_every_address(listener) && is_address(host)))
            return true;
    }
    return false;
}

static bool is_in(const struct config_list *list, const char *text)
{
    for (size_t i = 0; i < list->count; i++) {
        if (strcasecmp(list->items[i], text) == 0)
            return true;
    }
    return false;
}

bool auth_host_is_ours(const struct config *config, const char *host)
{
    char bare[HOST_SIZE];

    if (bare_host(host, bare) < 0)
        return false;
    return strcmp(bare, "localhost") == 0 || is_listened_on(&config->server.listen, bare) ||
           is_in(&config->server.hosts, bare) || is_in(&config->server.hosts, host);
}

static bool is_same(const char *origin, const char *host)
{
    const char *name = strstr(origin, "://");

    return name != NULL && strcasecmp(name + 3, host) == 0;
}

enum auth_origin auth_origin(const struct config *config, const struct headers *headers, const char *host)
{
    const char *origin = headers_find(headers, "origin");
    const char *site = headers_find(headers, "sec-fetch-site");
    const char *mode = headers_find(headers, "sec-fetch-mode");

    if (origin != NULL && is_in(&config->server.cors_origins, origin))
        return AUTH_ALLOWED_PAGE;
    if (origin != NULL)
        return is_same(origin, host) ? AUTH_OWN_PAGE : AUTH_FOREIGN_PAGE;
    if (site == NULL || strcasecmp(site, "none") == 0)
        return AUTH_NO_PAGE;
    if (strcasecmp(site, "same-origin") == 0)
        return AUTH_OWN_PAGE;
    /* A link that a person follows carries no credentials of ours; everything else without Origin is a page's doing. */
    return mode != NULL && strcasecmp(mode, "navigate") == 0 ? AUTH_NO_PAGE : AUTH_FOREIGN_PAGE;
}
