#include "gateway/store/verify.h"

#include "gateway/store/rows.h"

#include <string.h>

enum { SLICE_ROWS = 2000, ROW_BYTES_MAX = 16 << 20 };

#define N VALUE_OF_NUMBER
#define T VALUE_OF_TEXT

static int blame(struct verify *verify, uint64_t number, const char *what)
{
    verify->broken = true;
    verify->bad = number;
    (void)error_set(&verify->problem, ERROR_INVALID, 0, "audit record %llu %s", (unsigned long long)number, what);
    return 0;
}

static int load_link(struct database *database, const char *name, struct chain_link *ret_link, struct error *err)
{
    const struct value values[] = {T(name)};
    sqlite3_stmt *statement = database_bind(database, STATEMENT_CHAIN, values, 1, err);
    int r = statement != NULL ? database_step(database, statement, err) : -err->err;

    if (r < 0)
        return r;
    memset(ret_link, 0, sizeof *ret_link);
    if (r == 0)
        return 0; /* the row was removed: as if the log were empty */
    ret_link->number = (uint64_t)sqlite3_column_int64(statement, 0);
    (void)rows_read_hash(statement, 1, ret_link->hash);
    (void)sqlite3_reset(statement);
    return 0;
}

static bool is_same(const uint8_t *a, const uint8_t *b)
{
    return memcmp(a, b, STORE_HASH_BYTES) == 0;
}

/* One piece of output: does it follow from the one before, and has it the hash that it should have? */
static bool is_piece_right(sqlite3_stmt *statement, bool is_first, uint8_t hash[STORE_HASH_BYTES])
{
    uint8_t previous[STORE_HASH_BYTES];
    uint8_t stored[STORE_HASH_BYTES];
    int64_t stream = sqlite3_column_int64(statement, 1);
    struct store_output output = {
        .position = (uint64_t)sqlite3_column_int64(statement, 0),
        .stream = (uint8_t)stream,
        .offset = (uint64_t)sqlite3_column_int64(statement, 2),
        .data = sqlite3_column_blob(statement, 3),
        .length = (size_t)sqlite3_column_bytes(statement, 3),
    };

    if (stream < 0 || stream > UINT8_MAX || !rows_read_hash(statement, 4, previous) ||
        !rows_read_hash(statement, 5, stored))
        return false;
    /* What was before the first piece may have been trimmed. */
    if (is_first && output.position > 0)
        memcpy(hash, previous, STORE_HASH_BYTES);
    if (!is_same(previous, hash))
        return false;
    chain_hash_output(&output, previous, hash);
    return is_same(hash, stored);
}

/* 1: right; 0: not; or a negative errno. */
static int check_pieces(struct database *database, int64_t row, const uint8_t expected[STORE_HASH_BYTES],
                        struct error *err)
{
    const struct value values[] = {N(row)};
    uint8_t hash[STORE_HASH_BYTES] = {0};
    bool is_first = true;
    sqlite3_stmt *statement = database_bind(database, STATEMENT_OUTPUT_CHAIN, values, 1, err);
    int r = statement != NULL ? database_step(database, statement, err) : -err->err;

    for (; r > 0; r = database_step(database, statement, err)) {
        if (!is_piece_right(statement, is_first, hash)) {
            (void)sqlite3_reset(statement);
            return 0;
        }
        is_first = false;
    }
    return r < 0 ? r : is_same(hash, expected);
}

/* Output that retention removed went together with its exec. */
static int check_output(struct database *database, const struct store_audit *audit, struct error *err)
{
    const struct value values[] = {T(audit->exec)};
    sqlite3_stmt *statement = database_bind(database, STATEMENT_EXEC_ROW, values, 1, err);
    int r = statement != NULL ? database_step(database, statement, err) : -err->err;

    if (r <= 0)
        return r < 0 ? r : 1;
    int64_t row = sqlite3_column_int64(statement, 0);
    (void)sqlite3_reset(statement);
    return check_pieces(database, row, audit->output_hash, err);
}

static int check_record(struct verify *verify, struct database *database, sqlite3_stmt *statement, struct error *err)
{
    struct scratch scratch = scratch_init(ROW_BYTES_MAX);
    struct store_audit audit;
    uint8_t hash[STORE_HASH_BYTES];
    int r = 1;

    rows_read_audit(&scratch, statement, &audit);
    chain_hash_audit(&audit, hash);
    if (audit.number != verify->at.number + 1)
        r = blame(verify, verify->at.number + 1, "is missing");
    else if (scratch.full || !rows_is_audit_sane(statement) || !is_same(hash, audit.hash))
        r = blame(verify, audit.number, "was changed after it was written");
    else if (!is_same(audit.previous, verify->at.hash))
        r = blame(verify, audit.number, "does not follow from the one before it");
    else if (audit.with_output && (r = check_output(database, &audit, err)) == 0)
        (void)blame(verify, audit.number, "names output that was changed after it was written, or is missing");
    if (r > 0) {
        verify->at.number = audit.number;
        memcpy(verify->at.hash, audit.hash, STORE_HASH_BYTES);
        verify->checked++;
    }
    scratch_release(&scratch);
    return r < 0 ? r : 0;
}

static int check_end(struct verify *verify, const struct chain_link *head)
{
    if (verify->at.number < head->number)
        return blame(verify, verify->at.number + 1, "is missing");
    if (verify->at.number > head->number)
        return blame(verify, head->number + 1, "is beyond the end of the log");
    if (!is_same(verify->at.hash, head->hash))
        return blame(verify, head->number, "is not what the end of the log says");
    return 0;
}

static int check_rows(struct verify *verify, struct database *database, struct error *err)
{
    const struct value values[] = {N(verify->at.number + 1), N(SLICE_ROWS)};
    uint64_t before = verify->checked;
    sqlite3_stmt *statement = database_bind(database, STATEMENT_AUDIT_UPWARD, values, 2, err);
    int r = statement != NULL ? database_step(database, statement, err) : -err->err;

    while (r > 0 && !verify->broken) {
        r = check_record(verify, database, statement, err);
        if (r == 0 && !verify->broken)
            r = database_step(database, statement, err);
        else
            (void)sqlite3_reset(statement);
    }
    return r < 0 ? r : !verify->broken && verify->checked - before == SLICE_ROWS;
}

/* Records between may have been pruned since the last slice; then it goes on behind the new anchor. */
static int check_all(struct verify *verify, struct database *database, struct error *err)
{
    struct chain_link anchor;
    struct chain_link head;
    int64_t lowest = 0;
    int r = load_link(database, "anchor", &anchor, err);

    if (r == 0)
        r = load_link(database, "head", &head, err);
    if (r < 0)
        return r;
    if (!verify->started || anchor.number > verify->at.number) {
        verify->at = anchor;
        verify->first = verify->started ? verify->first : anchor.number + 1;
        verify->started = true;
    }
    sqlite3_stmt *statement = database_statement(database, STATEMENT_AUDIT_FIRST, err);
    r = statement != NULL ? database_step(database, statement, err) : -err->err;
    if (r > 0) {
        lowest = sqlite3_column_int64(statement, 0);
        bool has_rows = sqlite3_column_type(statement, 0) != SQLITE_NULL;
        (void)sqlite3_reset(statement);
        if (has_rows && lowest <= (int64_t)anchor.number)
            return blame(verify, (uint64_t)lowest, "is before the start of the log");
    }
    if (r >= 0)
        r = check_rows(verify, database, err);
    return r == 0 && !verify->broken ? check_end(verify, &head) : r;
}

int verify_slice(struct verify *verify, struct database *database, struct error *err)
{
    struct error ignored;
    int r = database_run(database, STATEMENT_BEGIN_READ, NULL, 0, NULL, err);

    if (r < 0)
        return r;
    r = check_all(verify, database, err);
    ignore_result(database_run(database, STATEMENT_COMMIT, NULL, 0, NULL, &ignored)); /* nothing was written */
    return r;
}
