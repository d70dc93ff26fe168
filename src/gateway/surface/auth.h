/*
 * auth: what a request says about who sends it, and whether a browser could have been made to send it. Pure; who a
 * secret belongs to is the store's to say (credentials.h).
 */
#pragma once

#include "gateway/config/config.h"
#include "gateway/net/http.h"

#include <stdbool.h>
#include <stddef.h>

enum auth_kind {
    AUTH_NONE, /* it says nothing */
    AUTH_KEY,
    AUTH_PASSWORD,  /* of the user admin */
    AUTH_MALFORMED, /* not understood, another scheme, another user, given twice */
};

enum { AUTH_SECRET_MAX = 1024 };

struct auth_claim {
    enum auth_kind kind;
    size_t length;
    char secret[AUTH_SECRET_MAX + 1]; /* wiped by auth_forget() */
};

/* Authorization goes before X-API-Key. */
void auth_read(const struct headers *headers, struct auth_claim *ret_claim);
void auth_forget(struct auth_claim *claim);

/*
 * May a request ask for this host? Names that point here by somebody else's DNS may not (rebinding): only localhost, an
 * address that is listened on, any address when all are, and what is configured. `host` is in lower case, with its
 * port.
 */
bool auth_host_is_ours(const struct config *config, const char *host);

enum auth_origin {
    AUTH_NO_PAGE,      /* no web page sent it */
    AUTH_OWN_PAGE,     /* one of this host */
    AUTH_ALLOWED_PAGE, /* one that is configured */
    AUTH_FOREIGN_PAGE,
};

enum auth_origin auth_origin(const struct config *config, const struct headers *headers, const char *host);
