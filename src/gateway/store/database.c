#include "gateway/store/database.h"

#include "gateway/store/logfile.h"

#include <string.h>

enum { BUSY_MS = 5000 };

static const char *const texts[] = {
#define STATEMENT_TEXT(name, text) [STATEMENT_##name] = (text),
    STATEMENTS(STATEMENT_TEXT)
#undef STATEMENT_TEXT
};

/* No file beside the database is ever needed: the gateway sees no /tmp. Checkpoints are not the writer's job. */
static const char *const settings[] = {
    [DATABASE_WRITER] = "PRAGMA temp_store = MEMORY; PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0;"
                        "PRAGMA cache_size = -16384; PRAGMA journal_size_limit = 67108864; PRAGMA cell_size_check = ON",
    [DATABASE_READER] = "PRAGMA temp_store = MEMORY; PRAGMA query_only = ON; PRAGMA wal_autocheckpoint = 0;"
                        "PRAGMA cache_size = -8192; PRAGMA cell_size_check = ON",
    [DATABASE_CHECKPOINTER] = "PRAGMA temp_store = MEMORY; PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0",
};

static int errno_of(const struct database *database)
{
    int system = sqlite3_system_errno(database->handle);

    switch (sqlite3_errcode(database->handle)) {
    case SQLITE_FULL:
        return ENOSPC;
    case SQLITE_CONSTRAINT:
        return EEXIST;
    case SQLITE_READONLY:
        return EROFS;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return EBADMSG;
    case SQLITE_NOMEM:
        return ENOMEM;
    case SQLITE_TOOBIG:
        return EFBIG;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return EBUSY;
    case SQLITE_CANTOPEN:
        return system > 0 ? system : ENOENT;
    default:
        return system > 0 && system != EAGAIN ? system : EIO;
    }
}

int database_error(const struct database *database, struct error *err)
{
    int number = errno_of(database);
    int system = sqlite3_system_errno(database->handle);
    bool is_system = number == system && strcmp(sqlite3_errmsg(database->handle), strerror(system)) != 0;

    (void)error_set(err, number == EEXIST ? ERROR_INVALID : ERROR_SYSTEM, is_system ? number : 0, "%s",
                    sqlite3_errmsg(database->handle));
    err->err = number;
    return -number;
}

bool database_is_broken_by(int result)
{
    return result < 0 && result != -EEXIST && result != -ENOENT && result != -EFBIG && result != -ENOBUFS;
}

int database_open(struct database *database, const char *path, enum database_role role, struct error *err)
{
    *database = (struct database){0};
    if (role == DATABASE_WRITER && logfile_new(&database->logfile, err) < 0)
        return -err->err;
    const char *layer = database->logfile != NULL ? logfile_name(database->logfile) : NULL;
    if (sqlite3_open_v2(path, &database->handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, layer) != SQLITE_OK) {
        if (database->handle == NULL)
            return error_set(err, ERROR_SYSTEM, ENOMEM, "opening the database");
        return database_error(database, err);
    }
    (void)sqlite3_extended_result_codes(database->handle, 0);
    (void)sqlite3_busy_timeout(database->handle, BUSY_MS);
    /* A file that somebody else wrote can't make SQL of its own run. */
    (void)sqlite3_db_config(database->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    (void)sqlite3_db_config(database->handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    (void)sqlite3_db_config(database->handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    return database_execute(database, settings[role], err);
}

void database_release(struct database *database)
{
    for (size_t i = 0; i < STATEMENTS_COUNT; i++)
        (void)sqlite3_finalize(database->statements[i]);
    (void)sqlite3_close(database->handle);
    logfile_free(database->logfile);
    *database = (struct database){0};
}

sqlite3_stmt *database_statement(struct database *database, enum statement name, struct error *err)
{
    sqlite3_stmt **statement = &database->statements[name];

    if (*statement == NULL && sqlite3_prepare_v3(database->handle, texts[name], -1, SQLITE_PREPARE_PERSISTENT,
                                                 statement, NULL) != SQLITE_OK) {
        (void)database_error(database, err);
        return NULL;
    }
    return *statement;
}

static int bind_one(sqlite3_stmt *statement, int place, const struct value *value)
{
    if (value->type == VALUE_NUMBER)
        return sqlite3_bind_int64(statement, place, value->number);
    if (value->type == VALUE_NULL || value->data == NULL)
        return sqlite3_bind_null(statement, place);
    if (value->type == VALUE_TEXT)
        return sqlite3_bind_text(statement, place, value->data, -1, SQLITE_STATIC);
    return sqlite3_bind_blob64(statement, place, value->data, value->length, SQLITE_STATIC);
}

sqlite3_stmt *database_bind(struct database *database, enum statement name, const struct value *values, size_t count,
                            struct error *err)
{
    sqlite3_stmt *statement = database_statement(database, name, err);

    for (size_t i = 0; statement != NULL && i < count; i++) {
        if (bind_one(statement, (int)i + 1, &values[i]) != SQLITE_OK) {
            (void)database_error(database, err);
            return NULL;
        }
    }
    return statement;
}

int database_step(struct database *database, sqlite3_stmt *statement, struct error *err)
{
    int r = sqlite3_step(statement);

    if (r == SQLITE_ROW)
        return 1;
    r = r == SQLITE_DONE ? 0 : database_error(database, err);
    (void)sqlite3_reset(statement);
    return r;
}

int database_run(struct database *database, enum statement name, const struct value *values, size_t count,
                 uint64_t *ret_changes, struct error *err)
{
    sqlite3_stmt *statement = database_bind(database, name, values, count, err);

    if (statement == NULL)
        return -err->err;
    int r = database_step(database, statement, err);
    if (r > 0)
        (void)sqlite3_reset(statement);
    if (r == 0 && ret_changes != NULL)
        *ret_changes = (uint64_t)sqlite3_changes64(database->handle);
    return r > 0 ? 0 : r;
}

int database_execute(struct database *database, const char *sql, struct error *err)
{
    return sqlite3_exec(database->handle, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : database_error(database, err);
}

int database_number(struct database *database, const char *sql, int64_t *ret_number, struct error *err)
{
    sqlite3_stmt *statement = NULL;
    int r = 0;

    if (sqlite3_prepare_v2(database->handle, sql, -1, &statement, NULL) != SQLITE_OK)
        return database_error(database, err);
    if (sqlite3_step(statement) == SQLITE_ROW)
        *ret_number = sqlite3_column_int64(statement, 0);
    else
        r = database_error(database, err);
    (void)sqlite3_finalize(statement);
    return r;
}
