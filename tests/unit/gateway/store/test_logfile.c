/*
 * The log as SQLite reads it again: a process writes through our layer and ends without a word; what it had committed
 * is there, and nothing else. A tiny cache makes SQLite write pages before the commit, go back and mend checksums.
 */
#include "fixture.h"
#include "gateway/store/logfile.h"

#include <signal.h>
#include <sys/wait.h>

enum { TRANSACTIONS = 60, ROWS = 400 };

static void run(sqlite3 *handle, const char *sql)
{
    if (sqlite3_exec(handle, sql, NULL, NULL, NULL) != SQLITE_OK)
        _exit(9);
}

static int64_t ask(sqlite3 *handle, const char *sql)
{
    sqlite3_stmt *statement = NULL;

    assert_int_equal(sqlite3_prepare_v2(handle, sql, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    int64_t number = sqlite3_column_int64(statement, 0);
    (void)sqlite3_finalize(statement);
    return number;
}

static void path_of(const struct fixture *fixture, char path[256])
{
    (void)snprintf(path, 256, "%s/test.db", fixture->folder);
}

/* Pages that were written already are changed again and again before the commit. */
static void write_one(sqlite3 *handle, int number, bool commit)
{
    char sql[256];

    run(handle, "BEGIN IMMEDIATE");
    for (int pass = 0; pass < 3; pass++) {
        (void)snprintf(sql, sizeof sql,
                       "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < %d) "
                       "REPLACE INTO t SELECT i * 7919 %% %d, %d, randomblob(300) FROM n",
                       ROWS - 1, ROWS, number);
        run(handle, sql);
    }
    run(handle, commit ? "COMMIT" : "ROLLBACK");
}

static void write_and_die(const char *path, int out)
{
    struct logfile *logfile = NULL;
    struct error err;
    sqlite3 *handle = NULL;

    if (logfile_new(&logfile, &err) < 0 ||
        sqlite3_open_v2(path, &handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, logfile_name(logfile)) != SQLITE_OK)
        _exit(8);
    run(handle, "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = 5;"
                "PRAGMA wal_autocheckpoint = 900; CREATE TABLE IF NOT EXISTS t(i INTEGER PRIMARY KEY, n INTEGER, b)");
    for (int i = 1; i <= TRANSACTIONS; i++) {
        write_one(handle, i, true);
        if (write(out, &i, sizeof i) != sizeof i)
            _exit(7);
        if (i % 7 == 0)
            write_one(handle, -i, false);
    }
    (void)raise(SIGKILL);
}

static int last_told(const char *path, int stop_after)
{
    int ends[2];
    int number = 0;
    int last = 0;
    int status;

    assert_return_code(pipe2(ends, O_CLOEXEC), errno);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        write_and_die(path, ends[1]);
    (void)close(ends[1]);
    while (read(ends[0], &number, sizeof number) == sizeof number) {
        last = number;
        if (last == stop_after)
            (void)kill(pid, SIGKILL);
    }
    (void)close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    return last;
}

TEST(what_was_committed_is_there)
{
    static const int stops[] = {1, 2, 13, 40, TRANSACTIONS + 1};
    char path[256];

    for (size_t i = 0; i < COUNT(stops); i++) {
        struct fixture fixture = fixture_new();
        sqlite3 *handle;
        path_of(&fixture, path);
        int last = last_told(path, stops[i]);
        assert_true(last > 0);
        assert_int_equal(sqlite3_open(path, &handle), SQLITE_OK);
        /* All rows are of one transaction: the last that was told, or one after it. */
        assert_int_equal(ask(handle, "SELECT count(*) FROM t"), ROWS);
        assert_int_equal(ask(handle, "SELECT count(DISTINCT n) FROM t"), 1);
        assert_true(ask(handle, "SELECT max(n) FROM t") >= last);
        assert_int_equal(ask(handle, "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check = 'ok'"), 1);
        (void)sqlite3_close(handle);
        fixture_remove(&fixture);
    }
}

/* Somebody who reads beside it, without our layer, sees each transaction as soon as it is committed. */
TEST(others_see_each_commit)
{
    struct fixture fixture = fixture_new();
    struct logfile *logfile = NULL;
    struct error err;
    sqlite3 *writer;
    sqlite3 *reader;
    char path[256];

    path_of(&fixture, path);
    assert_int_equal(logfile_new(&logfile, &err), 0);
    assert_int_equal(sqlite3_open_v2(path, &writer, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, logfile_name(logfile)),
                     SQLITE_OK);
    run(writer, "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = 5;"
                "CREATE TABLE t(i INTEGER PRIMARY KEY, n INTEGER, b)");
    assert_int_equal(sqlite3_open(path, &reader), SQLITE_OK);
    for (int i = 1; i <= 20; i++) {
        write_one(writer, i, true);
        assert_int_equal(ask(reader, "SELECT min(n) FROM t"), i);
        assert_int_equal(ask(reader, "SELECT sum(length(b)) FROM t"), ROWS * 300);
        run(writer, "UPDATE t SET b = 'small' WHERE i = 5");
        assert_int_equal(ask(reader, "SELECT count(*) FROM t WHERE b = 'small'"), 1);
        write_one(writer, -i, false);
        assert_int_equal(ask(reader, "SELECT min(n) FROM t"), i);
    }
    (void)sqlite3_close(reader);
    (void)sqlite3_close(writer);
    logfile_free(logfile);
    fixture_remove(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_committed_is_there),
        cmocka_unit_test(others_see_each_commit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
