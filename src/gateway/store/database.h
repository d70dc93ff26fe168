/*
 * database: one connection to the SQLite file, used by one thread, with its prepared statements.
 *
 * Says what SQLite says in our words: a negative errno and a message. Statements are prepared when first used and kept.
 */
#pragma once

#include "base/error.h"
#include "gateway/store/statements.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum database_role { DATABASE_WRITER, DATABASE_READER, DATABASE_CHECKPOINTER };

struct logfile;

struct database {
    sqlite3 *handle;
    struct logfile *logfile; /* the writer's */
    sqlite3_stmt *statements[STATEMENTS_COUNT];
};

_must_use_ int database_open(struct database *database, const char *path, enum database_role role, struct error *err);
void database_release(struct database *database);

/* Describe the last failure of this connection. */
int database_error(const struct database *database, struct error *err);

/* The statement, with nothing bound. NULL: described in `err`. It is given back with sqlite3_reset(). */
sqlite3_stmt *database_statement(struct database *database, enum statement name, struct error *err);

/* Values for the parameters of a statement, in order from `first`. */
struct value {
    enum { VALUE_NULL, VALUE_NUMBER, VALUE_TEXT, VALUE_BYTES } type;
    int64_t number;
    const void *data; /* NULL is NULL, whatever the type */
    size_t length;
};

#define VALUE_OF_NUMBER(n) ((struct value){.type = VALUE_NUMBER, .number = (int64_t)(n)})
#define VALUE_OF_TEXT(t) ((struct value){.type = VALUE_TEXT, .data = (t)})
#define VALUE_OF_BYTES(d, l) ((struct value){.type = VALUE_BYTES, .data = (d), .length = (l)})

/* Bind the values, which must live until the statement is reset. NULL: described in `err`. */
sqlite3_stmt *database_bind(struct database *database, enum statement name, const struct value *values, size_t count,
                            struct error *err);

/* Run a statement that gives no rows. `ret_changes` may be NULL. -EEXIST when it is there already. */
_must_use_ int database_run(struct database *database, enum statement name, const struct value *values, size_t count,
                            uint64_t *ret_changes, struct error *err);

/* One more row: 1, 0 at the end, or a negative errno; in the latter two cases the statement is reset. */
_must_use_ int database_step(struct database *database, sqlite3_stmt *statement, struct error *err);

/* SQL of ours that is not worth keeping, for the start. */
_must_use_ int database_execute(struct database *database, const char *sql, struct error *err);
_must_use_ int database_number(struct database *database, const char *sql, int64_t *ret_number, struct error *err);

/* Would this failure of a write hit the next one too? A record that is there already does not. */
bool database_is_broken_by(int result);
