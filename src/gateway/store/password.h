/*
 * password: argon2id, on the loop's workers, two at once; the rest waits in a short line.
 *
 * Used by credentials.c, on the loop's thread. A password that was right is remembered for a little while by its keyed
 * hash, in a small table, so that a client which sends it with each request is not the reason for 64 MiB and a tenth of
 * a second each time.
 */
#pragma once

#include "base/error.h"
#include "gateway/store/records.h"

#include <sodium.h>
#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

enum {
    PASSWORD_MIN = 8,
    PASSWORD_MAX = 1024,
    PASSWORD_AT_ONCE = 2,
    PASSWORD_WAITING_MAX = 32,
    PASSWORD_REMEMBERED_MAX = 16,
    PASSWORD_REMEMBERED_MS = 60000,
    PASSWORD_HASH_SIZE = crypto_pwhash_STRBYTES,
};

struct password_line;

/* NULL: no memory. `key` is that of the database. */
struct password_line *password_line_new(uv_loop_t *loop, const uint8_t key[STORE_KEY_BYTES]);

/* Nobody who asked for a check is called back any more; freed when the last worker is done. */
void password_line_free(struct password_line *line);

/* The hash that passwords are checked against, "" for none. Forgets what was remembered. */
void password_line_set(struct password_line *line, const char *hash);
bool password_line_has(const struct password_line *line);

/* Was it right a moment ago? */
bool password_is_remembered(struct password_line *line, const char *password, size_t length, int64_t now_ms);

typedef void (*password_checked_fn)(void *data, int result);
typedef void (*password_hashed_fn)(void *data, int result, const char *hash);

/* Both: -EINVAL too long, -EBUSY too many wait, -ENOMEM. The answer to a check is 0 or -EACCES. */
_must_use_ int password_check(struct password_line *line, const char *password, size_t length, int64_t now_ms,
                              password_checked_fn checked, void *data);

/* Always answered: -ECANCELED when the line is freed, -ENOMEM. */
_must_use_ int password_hash(struct password_line *line, const char *password, size_t length, password_hashed_fn hashed,
                             void *data);

/* Checks for this `data` are done without calling back. */
void password_forget(struct password_line *line, const void *data);
