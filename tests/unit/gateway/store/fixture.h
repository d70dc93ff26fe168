/*
 * A store in a folder of its own, on a real file system, with a loop that runs until an answer has come.
 */
#pragma once

#include "base/tree.h"
#include "gateway/store/batch.h"
#include "gateway/store/query.h"
#include "gateway/store/store.h"
#include "test.h"

#include <ftw.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

struct fixture {
    char folder[128];
    uv_loop_t loop;
    struct store *store;
    /* The last answer. */
    bool answered;
    int result;
    char message[512];
    uint64_t audit_number;
};

static inline void fixture_folder(struct fixture *fixture)
{
    const char *temporary = getenv("TMPDIR");

    (void)snprintf(fixture->folder, sizeof fixture->folder, "%s/hutch-store-XXXXXX",
                   temporary != NULL ? temporary : "/tmp");
    assert_non_null(mkdtemp(fixture->folder));
}

static inline int fixture_try_open(struct fixture *fixture, enum store_sync sync, struct error *err)
{
    struct store_options options = {.folder = fixture->folder, .sync = sync, .output_keep_bytes = 1 << 20};

    assert_int_equal(uv_loop_init(&fixture->loop), 0);
    int r = store_open(&options, &fixture->loop, &fixture->store, err);
    if (r < 0)
        assert_int_equal(uv_loop_close(&fixture->loop), 0);
    return r;
}

static inline void fixture_open(struct fixture *fixture)
{
    struct error err = {0};

    if (fixture_try_open(fixture, STORE_SYNC_INTERVAL, &err) < 0)
        fail_msg("%s", err.message);
}

static inline void fixture_close(struct fixture *fixture)
{
    store_close(fixture->store, NULL, NULL);
    assert_int_equal(uv_run(&fixture->loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&fixture->loop), 0);
}

static inline void fixture_remove(struct fixture *fixture)
{
    tree_remove(AT_FDCWD, fixture->folder);
}

static inline struct fixture fixture_new(void)
{
    struct fixture fixture = {0};

    fixture_folder(&fixture);
    return fixture;
}

static inline void fixture_done(void *data, const struct store_outcome *outcome)
{
    struct fixture *fixture = data;

    fixture->answered = true;
    fixture->result = outcome->result;
    fixture->audit_number = outcome->audit_number;
    (void)snprintf(fixture->message, sizeof fixture->message, "%s", outcome->message != NULL ? outcome->message : "");
}

static inline void fixture_await(struct fixture *fixture)
{
    while (!fixture->answered)
        (void)uv_run(&fixture->loop, UV_RUN_ONCE);
}

/* Submit, and run the loop until it is answered. */
static inline int fixture_submit(struct fixture *fixture, struct batch *batch)
{
    fixture->answered = false;
    assert_non_null(batch_submit(batch, fixture_done, fixture));
    fixture_await(fixture);
    return fixture->result;
}

static inline struct batch *fixture_batch(struct fixture *fixture)
{
    struct batch *batch = batch_new(fixture->store);

    assert_non_null(batch);
    return batch;
}

static inline void fixture_audit(struct fixture *fixture, const char *sandbox, const char *detail, int64_t time_ms)
{
    struct batch *batch = fixture_batch(fixture);

    batch_add_audit(batch, &(struct store_audit){.time_ms = time_ms,
                                                 .principal = "key_a",
                                                 .agent = "agent",
                                                 .sandbox = sandbox,
                                                 .exec = "ex_1",
                                                 .action = "exec.end",
                                                 .verdict = STORE_ALLOWED,
                                                 .detail = detail});
    assert_int_equal(fixture_submit(fixture, batch), 0);
}

/* SQL of somebody who is not us. */
static inline void fixture_tamper(const struct fixture *fixture, const char *sql)
{
    char path[256];
    sqlite3 *handle;
    char *message = NULL;

    (void)snprintf(path, sizeof path, "%s/hutch.db", fixture->folder);
    assert_int_equal(sqlite3_open(path, &handle), SQLITE_OK);
    (void)sqlite3_busy_timeout(handle, 5000);
    if (sqlite3_exec(handle, sql, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s: %s", sql, message);
    (void)sqlite3_close(handle);
}

static inline void fixture_verified(void *data, const struct store_verdict_of_log *verdict)
{
    void **both = data;
    struct fixture *fixture = both[0];
    struct store_verdict_of_log *ret = both[1];

    fixture->answered = true;
    *ret = *verdict;
    (void)snprintf(fixture->message, sizeof fixture->message, "%s", verdict->message != NULL ? verdict->message : "");
}

static inline struct store_verdict_of_log fixture_verify(struct fixture *fixture)
{
    struct store_verdict_of_log verdict = {0};
    void *both[] = {fixture, &verdict};

    fixture->answered = false;
    assert_non_null(query_verify(fixture->store, fixture_verified, both));
    fixture_await(fixture);
    assert_int_equal(verdict.result, 0);
    return verdict;
}
