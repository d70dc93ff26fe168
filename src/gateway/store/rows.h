/*
 * rows: rows of the database as records, with everything copied into an scratch.
 *
 * A row may have been changed by others: whoever needs to know asks whether it is as we would have written it.
 */
#pragma once

#include "gateway/store/records.h"
#include "gateway/store/scratch.h"

#include <sqlite3.h>

void rows_read_sandbox(struct scratch *scratch, sqlite3_stmt *statement, void *ret_sandbox);
void rows_read_exec(struct scratch *scratch, sqlite3_stmt *statement, void *ret_exec);
void rows_read_audit(struct scratch *scratch, sqlite3_stmt *statement, void *ret_audit);
void rows_read_key(struct scratch *scratch, sqlite3_stmt *statement, void *ret_key);
void rows_read_setting(struct scratch *scratch, sqlite3_stmt *statement, void *ret_setting);

/* Of AUDIT_COLUMNS: no byte is in the row that the record would not show. */
bool rows_is_audit_sane(sqlite3_stmt *statement);

bool rows_read_hash(sqlite3_stmt *statement, int column, uint8_t ret_hash[STORE_HASH_BYTES]);
