/*
 * logfile: SQLite's log, written in one call per transaction.
 *
 * SQLite writes each page of a commit in two calls, ten for the smallest record; most of a commit's time goes there.
 * This is its own file system layer but for the log's writes: what is appended is gathered until the frame that ends
 * the transaction, and written together with that. So a transaction is in the file before SQLite tells anybody of it,
 * as before. Whatever is not an append goes straight through.
 */
#pragma once

#include "base/error.h"

#include <sqlite3.h>
#include <stdbool.h>

struct logfile;

/* A layer of its own for one connection, by a name that sqlite3_open_v2() takes. */
_must_use_ int logfile_new(struct logfile **ret_logfile, struct error *err);
const char *logfile_name(const struct logfile *logfile);

/* After the connection is closed. */
void logfile_free(struct logfile *logfile);
