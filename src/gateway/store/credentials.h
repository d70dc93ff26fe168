/*
 * credentials: who calls, and what they may do.
 *
 * A principal is a key or the admin's password. Keys are held in memory, so checking one costs a hash and no SQL; only
 * keyed hashes of secrets are ever stored. On the loop's thread; owned by the gateway, beside the store, and freed
 * before that is closed.
 */
#pragma once

#include "base/id.h"
#include "gateway/store/query.h"
#include "gateway/store/records.h"
#include "gateway/store/store.h"

enum {
    CREDENTIALS_KEYS_MAX = 10000,
    CREDENTIALS_SECRET_SIZE = 64, /* hutch_, 52 characters, NUL */
    CREDENTIALS_SECRET_MAX = 256, /* of one that was preset */
    CREDENTIALS_SECRET_MIN = 16,
    CREDENTIALS_NAME_MAX = 64,
};

struct credentials;

struct principal {
    char id[CREDENTIALS_NAME_MAX + 1];    /* of the key, or "admin" */
    char agent[CREDENTIALS_NAME_MAX + 1]; /* that it is bound to, or empty */
    enum store_scope scope;
};

/* May it call what needs this scope? `admin` may do everything, `run` and `read` only their own. */
bool principal_may(const struct principal *principal, enum store_scope needed);

/* May it see, and touch, what `owner` made? */
bool principal_may_see(const struct principal *principal, const char *owner);
bool principal_may_touch(const struct principal *principal, const char *owner);

/* Blocks: for the start of the gateway. */
_must_use_ int credentials_new(struct store *store, struct credentials **ret_credentials, struct error *err);
void credentials_free(struct credentials *credentials);

/* Who has this secret: 0, or -EACCES for a wrong, expired or revoked one. `now_ms` since 1970. */
_must_use_ int credentials_check_key(struct credentials *credentials, const char *secret, size_t length, int64_t now_ms,
                                     struct principal *ret_principal);

typedef void (*credentials_checked_fn)(void *data, int result);

/*
 * Is this the admin's password? 0: yes, as it was a moment ago. -EACCES: it can't be. -EBUSY: too many wait.
 * -EINPROGRESS: a worker looks, and `checked` will be told 0 or -EACCES.
 */
_must_use_ int credentials_check_password(struct credentials *credentials, const char *password, size_t length,
                                          int64_t now_ms, credentials_checked_fn checked, void *data);

/* Whoever knows it. */
void principal_be_admin(struct principal *ret_principal);

/* Whoever asked with this `data` no longer wants to know. */
void credentials_forget(struct credentials *credentials, const void *data);

bool credentials_has_password(const struct credentials *credentials);

/* Set or change it; recorded, and in force, when `done` says 0. -EINVAL: too short or too long; -EBUSY, -ENOMEM. */
_must_use_ int credentials_set_password(struct credentials *credentials, const char *password, size_t length,
                                        store_done_fn done, void *data, struct error *err);

struct key_request {
    const char *name;
    const char *agent;  /* NULL: not bound */
    const char *secret; /* NULL: make one */
    enum store_scope scope;
    int64_t expires_ms;
};

/*
 * Make a key. The secret is told once, here; the key works when `done` says 0. -EINVAL, -ENOBUFS (too many keys),
 * -EEXIST (that secret is one already).
 */
_must_use_ int credentials_add_key(struct credentials *credentials, const struct key_request *request, int64_t now_ms,
                                   store_done_fn done, void *data, struct id *ret_id,
                                   char ret_secret[CREDENTIALS_SECRET_MAX + 1], struct error *err);

/* Takes effect at once. -ENOENT when there is no such key. */
_must_use_ int credentials_revoke_key(struct credentials *credentials, const char *id, int64_t now_ms,
                                      store_done_fn done, void *data);

/* The scope with this name: run, read, admin. -EINVAL. */
_must_use_ int credentials_scope(const char *name, enum store_scope *ret_scope);
const char *credentials_scope_name(enum store_scope scope);
