#include "gateway/store/schema.h"

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/id.h"
#include "gateway/store/records.h"

#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

enum {
    APPLICATION = 0x48555443,   /* "HUTC" */
    CHECK_BYTES_MAX = 64 << 20, /* what can be checked in a quarter of a second is */
    KEY_BYTES = STORE_KEY_BYTES,
};

/*
 * What is indexed costs a page for each record, in the time that its caller waits. So the audit log's index is a table
 * of its own that the writer fills when it has nothing else to do (audit_index, up to chain 'indexed').
 */
static const char *const migrations[] = {
    "CREATE TABLE meta(name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID;"
    "CREATE TABLE chain(name TEXT PRIMARY KEY, number INTEGER NOT NULL, hash BLOB NOT NULL) STRICT, WITHOUT ROWID;"
    "INSERT INTO chain VALUES('anchor', 0, zeroblob(32)), ('head', 0, zeroblob(32)), ('indexed', 0, zeroblob(32));"
    "CREATE TABLE scratch(row INTEGER PRIMARY KEY, data BLOB) STRICT;"
    "CREATE TABLE sandboxes(row INTEGER PRIMARY KEY, number INTEGER NOT NULL, id TEXT NOT NULL UNIQUE,"
    " owner TEXT, agent TEXT, status TEXT NOT NULL, template TEXT, profile TEXT, settings TEXT, reason TEXT,"
    " created_ms INTEGER NOT NULL, expires_ms INTEGER NOT NULL, ended_ms INTEGER NOT NULL,"
    " used_ms INTEGER NOT NULL) STRICT;"
    "CREATE INDEX sandboxes_live ON sandboxes(row) WHERE ended_ms = 0;"
    "CREATE INDEX sandboxes_ended ON sandboxes(ended_ms) WHERE ended_ms > 0;"
    "CREATE TABLE execs(row INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, sandbox TEXT, owner TEXT, agent TEXT,"
    " channel INTEGER NOT NULL, command TEXT, folder TEXT, settings TEXT, flags INTEGER NOT NULL,"
    " state TEXT NOT NULL, started_ms INTEGER NOT NULL, deadline_ms INTEGER NOT NULL, ended_ms INTEGER NOT NULL,"
    " exit_code INTEGER NOT NULL, timed_out INTEGER NOT NULL, truncated INTEGER NOT NULL,"
    " duration_us INTEGER NOT NULL, cpu_us INTEGER NOT NULL, memory_peak_bytes INTEGER NOT NULL,"
    " stdout_bytes INTEGER NOT NULL, stderr_bytes INTEGER NOT NULL) STRICT;"
    "CREATE INDEX execs_sandbox ON execs(sandbox);"
    "CREATE INDEX execs_live ON execs(row) WHERE ended_ms = 0;"
    "CREATE TABLE output(exec INTEGER NOT NULL, position INTEGER NOT NULL, stream INTEGER NOT NULL,"
    " offset INTEGER NOT NULL, previous BLOB NOT NULL, hash BLOB NOT NULL, data BLOB NOT NULL,"
    " PRIMARY KEY(exec, position)) STRICT, WITHOUT ROWID;"
    "CREATE TABLE audit(number INTEGER PRIMARY KEY, time_ms INTEGER NOT NULL, principal TEXT, agent TEXT,"
    " sandbox TEXT, exec TEXT, action TEXT, verdict INTEGER NOT NULL, detail TEXT, output_hash BLOB,"
    " previous BLOB NOT NULL, hash BLOB NOT NULL) STRICT;"
    "CREATE TABLE audit_index(kind INTEGER NOT NULL, name TEXT NOT NULL, number INTEGER NOT NULL,"
    " PRIMARY KEY(kind, name, number)) STRICT, WITHOUT ROWID;"
    "CREATE TABLE keys(row INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, name TEXT, hash BLOB NOT NULL UNIQUE,"
    " scope INTEGER NOT NULL, agent TEXT, created_ms INTEGER NOT NULL, expires_ms INTEGER NOT NULL,"
    " revoked_ms INTEGER NOT NULL, used_ms INTEGER NOT NULL) STRICT;"
    "CREATE TABLE passwords(name TEXT PRIMARY KEY, hash TEXT NOT NULL) STRICT, WITHOUT ROWID;"
    "CREATE TABLE settings(name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;",
};

int schema_version(void)
{
    return (int)(sizeof migrations / sizeof *migrations);
}

int schema_lock(const char *folder, int *ret_fd, struct error *err)
{
    char path[SCHEMA_PATH_MAX];
    char holder[32] = "";

    if (snprintf(path, sizeof path, "%s/store.lock", folder) >= (int)sizeof path)
        return error_set(err, ERROR_INVALID, ENAMETOOLONG, "%s", folder);
    _cleanup_fd_ int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return error_errno(err, "opening %s: does the folder exist, and may this user write to it?", path);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK) {
        ignore_result(fd_read_all(fd, holder, sizeof holder - 1)); /* only for the message */
        holder[strcspn(holder, "\n")] = '\0';
        return error_set(err, ERROR_LIMIT, EBUSY,
                         "%s is in use by another daemon (process %s): stop it, or give this one a state folder of "
                         "its own",
                         folder, holder[0] != '\0' ? holder : "unknown");
    }
    int length = snprintf(holder, sizeof holder, "%d\n", (int)getpid());
    if (ftruncate(fd, 0) < 0 || fd_write_all(fd, holder, (size_t)length) < 0)
        return error_errno(err, "writing to %s: is the disk full, or read-only?", path);
    *ret_fd = TAKE_FD(fd);
    return 0;
}

static off_t size_of(const char *path, const char *suffix)
{
    char whole[SCHEMA_PATH_MAX + 8];
    struct stat status;

    (void)snprintf(whole, sizeof whole, "%s%s", path, suffix);
    return stat(whole, &status) == 0 ? status.st_size : -1;
}

/* SQLite would throw the log of a lost database away. */
static int refuse_orphan(const char *path, struct error *err)
{
    if (size_of(path, "") > 0 || size_of(path, "-wal") <= 0)
        return 0;
    return error_set(
        err, ERROR_INVALID, EBADMSG,
        "%s is missing or empty, but its log %s-wal is not: put the database back, or move the log away to "
        "start with an empty one",
        path, path);
}

int schema_prepare_file(const char *path, struct error *err)
{
    int r = refuse_orphan(path, err);

    if (r < 0 || size_of(path, "") >= 0)
        return r;
    _cleanup_fd_ int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    return fd >= 0 ? 0 : error_errno(err, "making %s: may this user write to its folder?", path);
}

int schema_explain(const char *path, struct error *err)
{
    if (err->err == EBADMSG)
        error_wrap(err, "%s is damaged; nothing was changed. Move it away, or put a copy back", path);
    else
        error_wrap(err, "opening %s", path);
    return -err->err;
}

static int refuse_stranger(int64_t version, int64_t tables, int64_t application, const char *path, struct error *err)
{
    if (application != APPLICATION && (application != 0 || tables > 0 || version > 0))
        return error_set(err, ERROR_INVALID, EBADMSG, "%s is a database, but not one of Hutch's: move it away", path);
    if (version > schema_version())
        return error_set(err, ERROR_UNSUPPORTED, EPROTO,
                         "%s was written by a newer Hutch (schema %d, this one knows %d): run that one, or move the "
                         "database away",
                         path, (int)version, schema_version());
    return 0;
}

static int check_pages(struct database *database, const char *path, struct error *err)
{
    sqlite3_stmt *check = NULL;
    int r = 0;

    if (size_of(path, "") > CHECK_BYTES_MAX)
        return 0;
    if (sqlite3_prepare_v2(database->handle, "PRAGMA quick_check(1)", -1, &check, NULL) != SQLITE_OK ||
        sqlite3_step(check) != SQLITE_ROW)
        r = database_error(database, err);
    else if (strcmp((const char *)sqlite3_column_text(check, 0), "ok") != 0)
        r = error_set(err, ERROR_SYSTEM, EBADMSG, "%s", (const char *)sqlite3_column_text(check, 0));
    (void)sqlite3_finalize(check);
    return r;
}

/* What makes this database itself: an id, and the key that secrets are hashed with. */
static int add_identity(struct database *database, struct error *err)
{
    uint8_t key[KEY_BYTES];
    char hex[KEY_BYTES * 2 + 1];
    char text[ID_RANDOM_LENGTH + 1];
    char sql[256];

    if (id_random_text(text, ID_RANDOM_LENGTH) < 0)
        return error_set(err, ERROR_SYSTEM, EIO, "asking the kernel for random bytes");
    randombytes_buf(key, sizeof key);
    (void)sodium_bin2hex(hex, sizeof hex, key, sizeof key);
    (void)snprintf(sql, sizeof sql, "INSERT INTO meta VALUES('database', CAST('%s' AS BLOB)), ('key', x'%s')", text,
                   hex);
    int r = database_execute(database, sql, err);
    sodium_memzero(key, sizeof key);
    sodium_memzero(hex, sizeof hex);
    sodium_memzero(sql, sizeof sql);
    return r;
}

static int migrate(struct database *database, int version, struct error *err)
{
    char mark[64];
    int r = database_execute(database, "BEGIN IMMEDIATE", err);

    (void)snprintf(mark, sizeof mark, "PRAGMA user_version = %d", version + 1);
    if (r == 0)
        r = database_execute(database, migrations[version], err);
    if (r == 0 && version == 0)
        r = add_identity(database, err);
    if (r == 0)
        r = database_execute(database, mark, err);
    if (r == 0)
        r = database_execute(database, "COMMIT", err);
    if (r < 0) {
        struct error ignored;
        ignore_result(database_execute(database, "ROLLBACK", &ignored)); /* the first failure is the one to tell */
        error_wrap(err, "making the tables of version %d", version + 1);
    }
    return r;
}

static int use_log(struct database *database, struct error *err)
{
    char mark[64];
    int64_t pages = 0;
    int r = database_number(database, "PRAGMA page_count", &pages, err);

    (void)snprintf(mark, sizeof mark, "PRAGMA application_id = %d", APPLICATION);
    if (r == 0 && pages == 0)
        r = database_execute(database, mark, err);
    return r == 0 ? database_execute(database, "PRAGMA journal_mode = WAL", err) : r;
}

int schema_upgrade(struct database *database, const char *path, struct error *err)
{
    int64_t version = 0;
    int64_t tables = 0;
    int64_t application = 0;
    int r = database_number(database, "PRAGMA user_version", &version, err);

    if (r == 0)
        r = database_number(database, "PRAGMA application_id", &application, err);
    if (r == 0)
        r = database_number(database, "SELECT count(*) FROM sqlite_schema", &tables, err);
    if (r < 0)
        return schema_explain(path, err);
    r = refuse_stranger(version, tables, application, path, err);
    if (r < 0)
        return r;
    r = check_pages(database, path, err);
    if (r == 0)
        r = use_log(database, err);
    for (int next = (int)version; r == 0 && next < schema_version(); next++)
        r = migrate(database, next, err);
    return r == 0 ? 0 : schema_explain(path, err);
}
