#include "gateway/store/credentials.h"

#include "base/cleanup.h"
#include "gateway/store/batch.h"
#include "gateway/store/core.h"
#include "gateway/store/password.h"
#include "gateway/store/rows.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SLOTS = 32768,      /* a power of two, more than three for each key */
    SECRET_RANDOM = 52, /* 260 bits */
    TOUCH_MS = 60000,   /* how often the last use of a key is recorded */
};

static const char secret_prefix[] = "hutch_";
static const char admin[] = "admin";
static const char *const scope_names[] = {
    [STORE_SCOPE_RUN] = "run", [STORE_SCOPE_READ] = "read", [STORE_SCOPE_ADMIN] = "admin"};

struct entry {
    uint8_t hash[STORE_HASH_BYTES];
    struct principal principal;
    int64_t expires_ms;
    int64_t revoked_ms;
    int64_t touched_ms;
};

struct credentials {
    struct store *store;
    uint8_t key[STORE_KEY_BYTES];
    struct password_line *passwords;
    struct entry *slots[SLOTS];
    size_t count;   /* keys there are, and keys that are being recorded */
    size_t pending; /* answers that will still come from the store */
    bool freed;
};

/* A change that is being recorded. */
struct change {
    struct credentials *credentials;
    struct entry *entry; /* a new key, or NULL */
    char hash[PASSWORD_HASH_SIZE];
    store_done_fn done;
    void *data;
};

bool principal_may(const struct principal *principal, enum store_scope needed)
{
    return principal->scope == STORE_SCOPE_ADMIN || principal->scope == needed;
}

bool principal_may_see(const struct principal *principal, const char *owner)
{
    return principal->scope == STORE_SCOPE_READ || principal_may_touch(principal, owner);
}

bool principal_may_touch(const struct principal *principal, const char *owner)
{
    bool is_own = owner != NULL && strcmp(principal->id, owner) == 0;

    return principal->scope == STORE_SCOPE_ADMIN || (principal->scope == STORE_SCOPE_RUN && is_own);
}

int credentials_scope(const char *name, enum store_scope *ret_scope)
{
    for (size_t i = 0; name != NULL && i < sizeof scope_names / sizeof *scope_names; i++) {
        if (strcmp(name, scope_names[i]) == 0) {
            *ret_scope = (enum store_scope)i;
            return 0;
        }
    }
    return -EINVAL;
}

const char *credentials_scope_name(enum store_scope scope)
{
    return scope_names[scope];
}

/* Where the key with this hash is, or would go. What the hash reveals by its timing says nothing about the secret. */
static struct entry **find(struct credentials *credentials, const uint8_t hash[STORE_HASH_BYTES])
{
    uint32_t slot;

    memcpy(&slot, hash, sizeof slot);
    for (slot %= SLOTS; credentials->slots[slot] != NULL; slot = (slot + 1) % SLOTS) {
        if (sodium_memcmp(credentials->slots[slot]->hash, hash, STORE_HASH_BYTES) == 0)
            break;
    }
    return &credentials->slots[slot];
}

static void hash_secret(const struct credentials *credentials, const char *secret, size_t length,
                        uint8_t ret_hash[STORE_HASH_BYTES])
{
    (void)crypto_generichash(ret_hash, STORE_HASH_BYTES, (const uint8_t *)secret, length, credentials->key,
                             sizeof credentials->key);
}

static void free_all(struct credentials *credentials)
{
    for (size_t i = 0; i < SLOTS; i++)
        free(credentials->slots[i]);
    sodium_memzero(credentials->key, sizeof credentials->key);
    free(credentials);
}

void credentials_free(struct credentials *credentials)
{
    if (credentials == NULL)
        return;
    password_line_free(credentials->passwords);
    credentials->passwords = NULL;
    credentials->freed = true;
    if (credentials->pending == 0)
        free_all(credentials);
}

static int load_secrets(struct credentials *credentials, struct database *database, struct error *err)
{
    const struct value key[] = {VALUE_OF_TEXT("key")};
    const struct value name[] = {VALUE_OF_TEXT(admin)};
    sqlite3_stmt *statement = database_bind(database, STATEMENT_META, key, 1, err);
    int r = statement != NULL ? database_step(database, statement, err) : -err->err;

    if (r < 0)
        return r;
    bool found = r > 0 && rows_read_hash(statement, 0, credentials->key);
    (void)sqlite3_reset(statement);
    if (!found)
        return error_set(err, ERROR_SYSTEM, EBADMSG, "the database has lost the key that secrets are hashed with");
    credentials->passwords = password_line_new(credentials->store->async.loop, credentials->key);
    if (credentials->passwords == NULL)
        return error_set(err, ERROR_SYSTEM, ENOMEM, "reading the password");
    statement = database_bind(database, STATEMENT_PASSWORD, name, 1, err);
    r = statement != NULL ? database_step(database, statement, err) : -err->err;
    if (r > 0) {
        password_line_set(credentials->passwords, (const char *)sqlite3_column_text(statement, 0));
        (void)sqlite3_reset(statement);
    }
    return r < 0 ? r : 0;
}

static struct entry *new_entry(const struct store_key *key)
{
    struct entry *entry = calloc(1, sizeof *entry);

    if (entry == NULL)
        return NULL;
    memcpy(entry->hash, key->hash, sizeof entry->hash);
    (void)snprintf(entry->principal.id, sizeof entry->principal.id, "%s", key->id);
    (void)snprintf(entry->principal.agent, sizeof entry->principal.agent, "%s", key->agent != NULL ? key->agent : "");
    entry->principal.scope = key->scope;
    entry->expires_ms = key->expires_ms;
    entry->revoked_ms = key->revoked_ms;
    entry->touched_ms = key->used_ms;
    return entry;
}

/* A scope that we don't know, or a row that lacks its id, gives nothing to anybody. */
static bool is_sane(const struct store_key *key)
{
    return key->id != NULL && (unsigned)key->scope <= STORE_SCOPE_ADMIN;
}

static int load_key(struct credentials *credentials, sqlite3_stmt *statement)
{
    struct scratch scratch = scratch_init(1 << 20);
    struct store_key key;
    int r = 0;

    rows_read_key(&scratch, statement, &key);
    if (!scratch.full && is_sane(&key)) {
        struct entry **slot = find(credentials, key.hash);
        if (*slot == NULL) {
            *slot = new_entry(&key);
            credentials->count++;
        }
        r = *slot != NULL ? 0 : -ENOMEM;
    }
    scratch_release(&scratch);
    return r;
}

static int load_keys(struct credentials *credentials, struct database *database, struct error *err)
{
    const struct value values[] = {VALUE_OF_NUMBER(INT64_MAX), VALUE_OF_NUMBER(CREDENTIALS_KEYS_MAX)};
    sqlite3_stmt *statement = database_bind(database, STATEMENT_KEYS, values, 2, err);
    int r = statement != NULL ? database_step(database, statement, err) : -err->err;

    while (r > 0) {
        if (load_key(credentials, statement) < 0) {
            (void)sqlite3_reset(statement);
            return error_set(err, ERROR_SYSTEM, ENOMEM, "reading the keys");
        }
        r = database_step(database, statement, err);
    }
    return r;
}

int credentials_new(struct store *store, struct credentials **ret_credentials, struct error *err)
{
    struct credentials *credentials = calloc(1, sizeof *credentials);
    struct database database = {0};

    if (credentials == NULL)
        return error_set(err, ERROR_SYSTEM, ENOMEM, "reading the keys");
    credentials->store = store;
    int r = database_open(&database, store->path, DATABASE_READER, err);
    if (r == 0)
        r = load_secrets(credentials, &database, err);
    if (r == 0)
        r = load_keys(credentials, &database, err);
    database_release(&database);
    if (r < 0) {
        error_wrap(err, "reading credentials from %s", store->path);
        credentials_free(credentials);
        return r;
    }
    *ret_credentials = credentials;
    return 0;
}

static void touch(struct credentials *credentials, struct entry *entry, int64_t now_ms)
{
    struct batch *batch =
        now_ms - entry->touched_ms >= TOUCH_MS || now_ms < entry->touched_ms ? batch_new(credentials->store) : NULL;

    if (batch == NULL)
        return;
    entry->touched_ms = now_ms;
    batch_touch_key(batch, entry->principal.id, now_ms);
    (void)batch_submit(batch, NULL, NULL); /* a time that is lost is no harm */
}

int credentials_check_key(struct credentials *credentials, const char *secret, size_t length, int64_t now_ms,
                          struct principal *ret_principal)
{
    uint8_t hash[STORE_HASH_BYTES];

    if (length == 0 || length > CREDENTIALS_SECRET_MAX)
        return -EACCES;
    hash_secret(credentials, secret, length, hash);
    struct entry *entry = *find(credentials, hash);
    if (entry == NULL || entry->revoked_ms != 0 || (entry->expires_ms != 0 && entry->expires_ms <= now_ms))
        return -EACCES;
    touch(credentials, entry, now_ms);
    *ret_principal = entry->principal;
    return 0;
}

static struct change *new_change(struct credentials *credentials, store_done_fn done, void *data)
{
    struct change *change = calloc(1, sizeof *change);

    if (change != NULL)
        *change = (struct change){.credentials = credentials, .done = done, .data = data};
    return change;
}

static void settle(struct change *change, const struct store_outcome *outcome)
{
    struct credentials *credentials = change->credentials;
    bool freed = credentials->freed;

    credentials->pending--;
    if (!freed && change->done != NULL)
        change->done(change->data, outcome);
    if (freed && credentials->pending == 0)
        free_all(credentials);
    free(change->entry);
    free(change);
}

static void record(struct batch *batch, store_done_fn recorded, struct change *change)
{
    change->credentials->pending++;
    (void)batch_submit(batch, recorded, change);
}

static void key_recorded(void *data, const struct store_outcome *outcome)
{
    struct change *change = data;
    struct credentials *credentials = change->credentials;

    if (outcome->result == 0 && !credentials->freed) {
        struct entry **slot = find(credentials, change->entry->hash);
        *slot = TAKE_PTR(change->entry);
    } else {
        credentials->count--;
    }
    settle(change, outcome);
}

static int check_request(const struct key_request *request, struct error *err)
{
    size_t length = request->secret != NULL ? strlen(request->secret) : CREDENTIALS_SECRET_MIN;

    if (length < CREDENTIALS_SECRET_MIN || length > CREDENTIALS_SECRET_MAX)
        return error_set(err, ERROR_INVALID, EINVAL, "a key must have %d to %d characters", CREDENTIALS_SECRET_MIN,
                         CREDENTIALS_SECRET_MAX);
    if ((request->name != NULL && strlen(request->name) > CREDENTIALS_NAME_MAX) ||
        (request->agent != NULL && strlen(request->agent) > CREDENTIALS_NAME_MAX))
        return error_set(err, ERROR_INVALID, EINVAL, "a key's name and agent have at most %d characters",
                         CREDENTIALS_NAME_MAX);
    return 0;
}

static int make_secret(const struct key_request *request, char ret_secret[CREDENTIALS_SECRET_MAX + 1])
{
    char random[SECRET_RANDOM + 1];

    if (request->secret != NULL) {
        (void)snprintf(ret_secret, CREDENTIALS_SECRET_MAX + 1, "%s", request->secret);
        return 0;
    }
    int r = id_random_text(random, SECRET_RANDOM);
    if (r == 0)
        (void)snprintf(ret_secret, CREDENTIALS_SECRET_MAX + 1, "%s%s", secret_prefix, random);
    sodium_memzero(random, sizeof random);
    return r;
}

static int submit_key(struct credentials *credentials, const struct store_key *key, store_done_fn done, void *data)
{
    struct change *change = new_change(credentials, done, data);
    struct batch *batch = change != NULL ? batch_new(credentials->store) : NULL;
    struct entry *entry = batch != NULL ? new_entry(key) : NULL;

    if (entry == NULL) {
        batch_free(batch);
        free(change);
        return -ENOMEM;
    }
    change->entry = entry;
    credentials->count++;
    batch_add_key(batch, key);
    record(batch, key_recorded, change);
    return 0;
}

int credentials_add_key(struct credentials *credentials, const struct key_request *request, int64_t now_ms,
                        store_done_fn done, void *data, struct id *ret_id, char ret_secret[CREDENTIALS_SECRET_MAX + 1],
                        struct error *err)
{
    struct store_key key = {.name = request->name,
                            .scope = request->scope,
                            .agent = request->agent,
                            .created_ms = now_ms,
                            .expires_ms = request->expires_ms};
    int r = check_request(request, err);

    if (r < 0)
        return r;
    if (credentials->count >= CREDENTIALS_KEYS_MAX)
        return error_set(err, ERROR_LIMIT, ENOBUFS, "there are %d keys already", CREDENTIALS_KEYS_MAX);
    r = make_secret(request, ret_secret);
    if (r == 0)
        r = id_make(ID_KEY, ret_id);
    if (r < 0)
        return error_set(err, ERROR_SYSTEM, -r, "asking the kernel for random bytes");
    key.id = ret_id->text;
    hash_secret(credentials, ret_secret, strlen(ret_secret), key.hash);
    if (*find(credentials, key.hash) != NULL)
        return error_set(err, ERROR_INVALID, EEXIST, "this is a key, or was one, already");
    r = submit_key(credentials, &key, done, data);
    return r == 0 ? 0 : error_set(err, ERROR_SYSTEM, -r, "recording the key");
}

static struct entry *find_by_id(struct credentials *credentials, const char *id)
{
    for (size_t i = 0; i < SLOTS; i++) {
        if (credentials->slots[i] != NULL && strcmp(credentials->slots[i]->principal.id, id) == 0)
            return credentials->slots[i];
    }
    return NULL;
}

static void change_recorded(void *data, const struct store_outcome *outcome)
{
    settle(data, outcome);
}

int credentials_revoke_key(struct credentials *credentials, const char *id, int64_t now_ms, store_done_fn done,
                           void *data)
{
    struct entry *entry = find_by_id(credentials, id);

    if (entry == NULL)
        return -ENOENT;
    entry->revoked_ms = now_ms > 0 ? now_ms : 1;
    struct change *change = new_change(credentials, done, data);
    struct batch *batch = change != NULL ? batch_new(credentials->store) : NULL;
    if (batch == NULL) {
        free(change);
        return -ENOMEM;
    }
    batch_revoke_key(batch, id, entry->revoked_ms);
    record(batch, change_recorded, change);
    return 0;
}

bool credentials_has_password(const struct credentials *credentials)
{
    return password_line_has(credentials->passwords);
}

void principal_be_admin(struct principal *ret_principal)
{
    *ret_principal = (struct principal){.scope = STORE_SCOPE_ADMIN};
    (void)snprintf(ret_principal->id, sizeof ret_principal->id, "%s", admin);
}

int credentials_check_password(struct credentials *credentials, const char *password, size_t length, int64_t now_ms,
                               credentials_checked_fn checked, void *data)
{
    if (length < PASSWORD_MIN || length > PASSWORD_MAX || !credentials_has_password(credentials))
        return -EACCES;
    if (password_is_remembered(credentials->passwords, password, length, now_ms))
        return 0;
    int r = password_check(credentials->passwords, password, length, now_ms, checked, data);
    return r == 0 ? -EINPROGRESS : r;
}

void credentials_forget(struct credentials *credentials, const void *data)
{
    password_forget(credentials->passwords, data);
}

static void password_recorded(void *data, const struct store_outcome *outcome)
{
    struct change *change = data;

    if (outcome->result == 0 && !change->credentials->freed)
        password_line_set(change->credentials->passwords, change->hash);
    settle(change, outcome);
}

static void password_hashed(void *data, int result, const char *hash)
{
    struct change *change = data;
    struct batch *batch = result == 0 ? batch_new(change->credentials->store) : NULL;

    if (batch == NULL) {
        settle(change, &(struct store_outcome){.result = result < 0 ? result : -ENOMEM,
                                               .message = "there is not enough memory to hash a password"});
        return;
    }
    (void)snprintf(change->hash, sizeof change->hash, "%s", hash);
    batch_set_password(batch, admin, change->hash);
    (void)batch_submit(batch, password_recorded, change);
}

int credentials_set_password(struct credentials *credentials, const char *password, size_t length, store_done_fn done,
                             void *data, struct error *err)
{
    if (length < PASSWORD_MIN || length > PASSWORD_MAX)
        return error_set(err, ERROR_INVALID, EINVAL, "a password must have %d to %d characters", PASSWORD_MIN,
                         PASSWORD_MAX);
    struct change *change = new_change(credentials, done, data);
    int r = change != NULL ? password_hash(credentials->passwords, password, length, password_hashed, change) : -ENOMEM;
    if (r < 0) {
        free(change);
        return error_set(err, ERROR_LIMIT, -r, "changing the password");
    }
    credentials->pending++;
    return 0;
}
