#include "gateway/store/prune.h"

#include "base/clock.h"

#include <string.h>

enum {
    SLICE_NS = 1500000,
    AUDIT_ROWS = 100,
    OUTPUT_PIECES = 16, /* of 64 KiB */
    SANDBOX_ROWS = 50,
    PAGE_BYTES = 4096,
};

#define N VALUE_OF_NUMBER
#define T VALUE_OF_TEXT

/* The first column of the first row: 1, 0 when there is none or it is NULL, or a negative errno. */
static int ask(struct applier *applier, enum statement name, const struct value *values, size_t count,
               int64_t *ret_number, struct error *err)
{
    sqlite3_stmt *statement = database_bind(applier->database, name, values, count, err);
    int r = statement != NULL ? database_step(applier->database, statement, err) : -err->err;

    if (r <= 0)
        return r;
    r = sqlite3_column_type(statement, 0) != SQLITE_NULL;
    *ret_number = sqlite3_column_int64(statement, 0);
    (void)sqlite3_reset(statement);
    return r;
}

/* Which records may go, of the first AUDIT_ROWS: all up to this number. */
static int find_last_audit(const struct prune *prune, struct applier *applier, int64_t *ret_last, struct error *err)
{
    const struct store_retention *retention = &prune->retention;
    const struct value values[] = {N(AUDIT_ROWS), N(retention->audit_before_ms)};
    int64_t last = 0;
    int64_t kept = 0;
    int r = ask(applier, STATEMENT_PRUNE_AUDIT_LAST, values, 1, &last, err);

    *ret_last = 0;
    if (r <= 0)
        return r;
    if (retention->audit_keep > 0 && applier->head.number > retention->audit_keep)
        *ret_last = (int64_t)(applier->head.number - retention->audit_keep);
    if (retention->audit_before_ms > 0) {
        r = ask(applier, STATEMENT_PRUNE_AUDIT_KEPT, values, 2, &kept, err);
        int64_t old = r > 0 ? kept - 1 : last;
        *ret_last = old > *ret_last ? old : *ret_last;
    }
    *ret_last = *ret_last < last ? *ret_last : last;
    return r < 0 ? r : 0;
}

static int set_anchor(struct applier *applier, int64_t number, struct error *err)
{
    const struct value which[] = {N(number)};
    uint8_t hash[STORE_HASH_BYTES] = {0};
    sqlite3_stmt *statement = database_bind(applier->database, STATEMENT_AUDIT_HASH, which, 1, err);
    int r = statement != NULL ? database_step(applier->database, statement, err) : -err->err;

    if (r < 0)
        return r;
    if (r > 0 && sqlite3_column_bytes(statement, 0) == STORE_HASH_BYTES)
        memcpy(hash, sqlite3_column_blob(statement, 0), sizeof hash);
    (void)sqlite3_reset(statement);
    if (r == 0)
        return error_set(err, ERROR_SYSTEM, EBADMSG, "audit record %lld is missing: the log is not pruned",
                         (long long)number);
    const struct value values[] = {T("anchor"), N(number), VALUE_OF_BYTES(hash, sizeof hash)};
    return database_run(applier->database, STATEMENT_SET_CHAIN, values, 3, NULL, err);
}

static int prune_audit(struct prune *prune, struct applier *applier, struct error *err)
{
    int64_t last = 0;
    int64_t first = 0;
    uint64_t removed = 0;
    int r = find_last_audit(prune, applier, &last, err);

    if (r == 0)
        r = ask(applier, STATEMENT_AUDIT_FIRST, NULL, 0, &first, err);
    if (r <= 0 || last < first) {
        prune->phase = PRUNE_EXECS;
        return r < 0 ? r : 0;
    }
    const struct value values[] = {N(last)};
    r = set_anchor(applier, last, err);
    if (r == 0)
        r = database_run(applier->database, STATEMENT_PRUNE_INDEX, values, 1, NULL, err);
    if (r == 0)
        r = database_run(applier->database, STATEMENT_PRUNE_AUDIT, values, 1, &removed, err);
    prune->removed += removed;
    return r;
}

/* A few pieces of the oldest exec's output, oldest first, and the exec with its last. 1: there was one. */
static int prune_exec(struct prune *prune, struct applier *applier, int64_t before_ms, struct error *err)
{
    const struct value before[] = {N(before_ms)};
    int64_t row = 0;
    int64_t left = 0;
    uint64_t removed = 0;
    int r = ask(applier, STATEMENT_PRUNE_EXEC, before, 1, &row, err);

    if (r <= 0)
        return r;
    const struct value values[] = {N(row), N(OUTPUT_PIECES)};
    r = database_run(applier->database, STATEMENT_PRUNE_OUTPUT, values, 2, &removed, err);
    prune->removed += removed;
    if (r == 0 && removed == OUTPUT_PIECES)
        r = ask(applier, STATEMENT_OUTPUT_FIRST, values, 1, &left, err);
    if (r != 0)
        return r;
    r = database_run(applier->database, STATEMENT_DROP_EXEC, values, 1, &removed, err);
    prune->removed += removed;
    return r < 0 ? r : 1;
}

static int prune_execs(struct prune *prune, struct applier *applier, struct error *err)
{
    int r =
        prune->retention.ended_before_ms > 0 ? prune_exec(prune, applier, prune->retention.ended_before_ms, err) : 0;

    if (r == 0)
        prune->phase = PRUNE_SANDBOXES;
    return r < 0 ? r : 0;
}

static int prune_sandboxes(struct prune *prune, struct applier *applier, struct error *err)
{
    const struct value values[] = {N(prune->retention.ended_before_ms), N(SANDBOX_ROWS)};
    uint64_t removed = 0;
    int r = prune->retention.ended_before_ms > 0
                ? database_run(applier->database, STATEMENT_PRUNE_SANDBOXES, values, 2, &removed, err)
                : 0;

    prune->removed += removed;
    if (removed < SANDBOX_ROWS)
        prune->phase = PRUNE_SIZE;
    return r;
}

static int prune_size(struct prune *prune, struct applier *applier, struct error *err)
{
    int64_t pages = 0;
    int r = prune->retention.database_bytes > 0 ? ask(applier, STATEMENT_PAGE_COUNT, NULL, 0, &pages, err) : 0;

    if (r > 0 && (uint64_t)pages * PAGE_BYTES > prune->retention.database_bytes)
        r = prune_exec(prune, applier, INT64_MAX, err);
    else
        r = r < 0 ? r : 0;
    if (r == 0)
        prune->phase = PRUNE_DONE;
    return r < 0 ? r : 0;
}

int prune_slice(struct prune *prune, struct applier *applier, struct error *err)
{
    static int (*const phases[])(struct prune *, struct applier *, struct error *) = {
        [PRUNE_AUDIT] = prune_audit,
        [PRUNE_EXECS] = prune_execs,
        [PRUNE_SANDBOXES] = prune_sandboxes,
        [PRUNE_SIZE] = prune_size,
    };
    uint64_t until_ns = clock_now_ns() + SLICE_NS;
    int r = 0;

    while (r == 0 && prune->phase != PRUNE_DONE && clock_now_ns() < until_ns)
        r = phases[prune->phase](prune, applier, err);
    return r;
}
