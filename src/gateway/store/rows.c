#include "gateway/store/rows.h"

#include <string.h>

static const char *text(struct scratch *scratch, sqlite3_stmt *statement, int column)
{
    return scratch_copy_text(scratch, (const char *)sqlite3_column_text(statement, column));
}

static uint64_t number(sqlite3_stmt *statement, int column)
{
    return (uint64_t)sqlite3_column_int64(statement, column);
}

bool rows_read_hash(sqlite3_stmt *statement, int column, uint8_t ret_hash[STORE_HASH_BYTES])
{
    const void *hash = sqlite3_column_blob(statement, column);

    if (hash == NULL || sqlite3_column_bytes(statement, column) != STORE_HASH_BYTES)
        return false;
    memcpy(ret_hash, hash, STORE_HASH_BYTES);
    return true;
}

void rows_read_sandbox(struct scratch *scratch, sqlite3_stmt *statement, void *ret_sandbox)
{
    *(struct store_sandbox *)ret_sandbox = (struct store_sandbox){
        .row = number(statement, 0),
        .number = number(statement, 1),
        .id = text(scratch, statement, 2),
        .owner = text(scratch, statement, 3),
        .agent = text(scratch, statement, 4),
        .status = text(scratch, statement, 5),
        .template_name = text(scratch, statement, 6),
        .profile = text(scratch, statement, 7),
        .settings = text(scratch, statement, 8),
        .reason = text(scratch, statement, 9),
        .created_ms = sqlite3_column_int64(statement, 10),
        .expires_ms = sqlite3_column_int64(statement, 11),
        .ended_ms = sqlite3_column_int64(statement, 12),
        .used_ms = sqlite3_column_int64(statement, 13),
    };
}

void rows_read_exec(struct scratch *scratch, sqlite3_stmt *statement, void *ret_exec)
{
    *(struct store_exec *)ret_exec = (struct store_exec){
        .row = number(statement, 0),
        .id = text(scratch, statement, 1),
        .sandbox = text(scratch, statement, 2),
        .owner = text(scratch, statement, 3),
        .agent = text(scratch, statement, 4),
        .channel = number(statement, 5),
        .command = text(scratch, statement, 6),
        .folder = text(scratch, statement, 7),
        .settings = text(scratch, statement, 8),
        .flags = number(statement, 9),
        .state = text(scratch, statement, 10),
        .started_ms = sqlite3_column_int64(statement, 11),
        .deadline_ms = sqlite3_column_int64(statement, 12),
        .ended_ms = sqlite3_column_int64(statement, 13),
        .exit_code = sqlite3_column_int64(statement, 14),
        .timed_out = number(statement, 15) != 0,
        .truncated = number(statement, 16) != 0,
        .duration_us = number(statement, 17),
        .cpu_us = number(statement, 18),
        .memory_peak_bytes = number(statement, 19),
        .stdout_bytes = number(statement, 20),
        .stderr_bytes = number(statement, 21),
    };
}

void rows_read_audit(struct scratch *scratch, sqlite3_stmt *statement, void *ret_audit)
{
    struct store_audit *audit = ret_audit;

    *audit = (struct store_audit){
        .number = number(statement, 0),
        .time_ms = sqlite3_column_int64(statement, 1),
        .principal = text(scratch, statement, 2),
        .agent = text(scratch, statement, 3),
        .sandbox = text(scratch, statement, 4),
        .exec = text(scratch, statement, 5),
        .action = text(scratch, statement, 6),
        .verdict = (enum store_verdict)number(statement, 7),
        .detail = text(scratch, statement, 8),
    };
    audit->with_output = rows_read_hash(statement, 9, audit->output_hash);
    (void)rows_read_hash(statement, 10, audit->previous);
    (void)rows_read_hash(statement, 11, audit->hash);
}

static bool is_plain_text(sqlite3_stmt *statement, int column)
{
    const char *value = (const char *)sqlite3_column_text(statement, column);

    return value == NULL || strlen(value) == (size_t)sqlite3_column_bytes(statement, column);
}

static bool is_hash(sqlite3_stmt *statement, int column)
{
    return sqlite3_column_type(statement, column) == SQLITE_BLOB &&
           sqlite3_column_bytes(statement, column) == STORE_HASH_BYTES;
}

bool rows_is_audit_sane(sqlite3_stmt *statement)
{
    bool sane = number(statement, 7) <= STORE_FAILED;

    for (int column = 2; column <= 8; column++)
        sane = sane && (column == 7 || is_plain_text(statement, column));
    sane = sane && (sqlite3_column_type(statement, 9) == SQLITE_NULL || is_hash(statement, 9));
    return sane && is_hash(statement, 10) && is_hash(statement, 11);
}

void rows_read_key(struct scratch *scratch, sqlite3_stmt *statement, void *ret_key)
{
    struct store_key *key = ret_key;

    *key = (struct store_key){
        .row = number(statement, 0),
        .id = text(scratch, statement, 1),
        .name = text(scratch, statement, 2),
        .scope = (enum store_scope)number(statement, 4),
        .agent = text(scratch, statement, 5),
        .created_ms = sqlite3_column_int64(statement, 6),
        .expires_ms = sqlite3_column_int64(statement, 7),
        .revoked_ms = sqlite3_column_int64(statement, 8),
        .used_ms = sqlite3_column_int64(statement, 9),
    };
    (void)rows_read_hash(statement, 3, key->hash);
}

void rows_read_setting(struct scratch *scratch, sqlite3_stmt *statement, void *ret_setting)
{
    *(struct store_setting *)ret_setting = (struct store_setting){
        .name = text(scratch, statement, 0),
        .value = text(scratch, statement, 1),
    };
}
