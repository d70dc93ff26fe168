/*
 * The writer's thread. It takes everything that has come in, puts it into one transaction and commits; what comes in
 * meanwhile is the next one. A batch that can't be recorded by its own fault (it is there already) makes the group be
 * recorded batch by batch. Any other failure is the database's: then everything is answered with it, and a write of
 * ours is tried now and then until one works. Between transactions there is time for a slice of pruning.
 */
#include "base/clock.h"
#include "gateway/store/core.h"
#include "gateway/store/prune.h"

enum {
    GROUP_CALLS = 1024,
    GROUP_BYTES = 16 << 20,
    PROBE_MS = 250,
    /* Records are indexed when nobody waits: a few after a second, many after a moment, very many at once. */
    INDEX_FEW_MS = 1000,
    INDEX_MANY = 256,
    INDEX_MANY_MS = 5,
    INDEX_AT_ONCE = 1024,
};

/* Called by SQLite within the commit, on the writer's thread. */
static int note_pages(void *argument, sqlite3 *handle, const char *name, int pages)
{
    (void)handle;
    (void)name;
    *(uint64_t *)argument = (uint64_t)pages;
    return SQLITE_OK;
}

static void roll_back(struct store *store, const struct chain_link *head)
{
    struct error ignored;

    if (sqlite3_get_autocommit(store->writer.handle) == 0)
        ignore_result(database_run(&store->writer, STATEMENT_ROLLBACK, NULL, 0, NULL, &ignored)); /* told already */
    store->applier.head = *head;
}

static int finish(struct store *store, const struct chain_link *head, int r, struct error *err)
{
    if (r == 0 && store->applier.head.number != head->number)
        r = apply_save_head(&store->applier, err);
    if (r == 0)
        r = database_run(&store->writer, STATEMENT_COMMIT, NULL, 0, NULL, err);
    if (r < 0)
        roll_back(store, head);
    return r;
}

/* All of them, or none. */
static int record(struct store *store, struct call_list *calls, struct error *err)
{
    struct chain_link head = store->applier.head;
    int r = database_run(&store->writer, STATEMENT_BEGIN, NULL, 0, NULL, err);

    for (struct store_call *call = calls->first; call != NULL && r == 0; call = call->next)
        r = apply_batch(&store->applier, (struct batch *)call, err);
    r = finish(store, &head, r, err);
    if (r == 0)
        atomic_fetch_add(&store->groups, 1);
    return r;
}

static void refuse(struct store *store, struct call_list *calls, int result, const struct error *err)
{
    for (struct store_call *call = calls->first; call != NULL; call = call->next) {
        call->result = result;
        call->error = *err;
        error_wrap(&call->error, "recording in %s", store->path);
    }
    core_answer(store, calls);
}

static void fail(struct store *store, const struct error *err)
{
    struct error failure = *err;

    error_wrap(&failure, "recording in %s", store->path);
    core_set_failure(store, &failure);
    store->probed_ns = clock_now_ns();
}

static void note_time(struct store *store, uint64_t start_ns)
{
    uint64_t took_us = (clock_now_ns() - start_ns) / 1000;

    atomic_fetch_add_explicit(&store->busy_us, took_us, memory_order_relaxed);
    if (took_us > atomic_load_explicit(&store->stall_us, memory_order_relaxed))
        atomic_store_explicit(&store->stall_us, took_us, memory_order_relaxed);
}

/* A transaction, while the gate keeps the checkpointer's last pass out. */
static int record_at_gate(struct store *store, struct call_list *calls, struct error *err)
{
    uint64_t start_ns = clock_now_ns();

    (void)pthread_mutex_lock(&store->durability.gate);
    int r = record(store, calls, err);
    (void)pthread_mutex_unlock(&store->durability.gate);
    note_time(store, start_ns);
    return r;
}

static void recorded(struct store *store, struct call_list *calls)
{
    uint64_t count = 0;

    for (struct store_call *call = calls->first; call != NULL; call = call->next)
        count++;
    atomic_fetch_add(&store->batches, count);
    durability_committed(&store->durability, calls, store->log_pages);
}

static void commit(struct store *store, struct call_list *calls)
{
    struct error err = {0};
    bool is_one = calls->first->next == NULL;
    int r = record_at_gate(store, calls, &err);

    if (r == 0) {
        recorded(store, calls);
    } else if (database_is_broken_by(r)) {
        fail(store, &err);
        refuse(store, calls, r, &err);
    } else if (is_one) {
        refuse(store, calls, r, &err);
    } else {
        for (struct store_call *call = call_list_take(calls); call != NULL; call = call_list_take(calls)) {
            struct call_list one = {0};
            call_list_add(&one, call);
            commit(store, &one);
        }
    }
}

/* Does the database take writes again? */
static void probe(struct store *store)
{
    struct error err = {0};
    struct chain_link head = store->applier.head;
    struct call_list none = {0};
    int r = database_run(&store->writer, STATEMENT_BEGIN, NULL, 0, NULL, &err);

    if (r == 0)
        r = database_run(&store->writer, STATEMENT_PROBE, NULL, 0, NULL, &err);
    r = finish(store, &head, r, &err);
    if (r < 0) {
        fail(store, &err);
        return;
    }
    core_set_failure(store, NULL);
    durability_committed(&store->durability, &none, store->log_pages);
}

static void refuse_failing(struct store *store, struct call_list *calls)
{
    struct error err;

    core_get_failure(store, &err);
    for (struct store_call *call = calls->first; call != NULL; call = call->next) {
        call->result = -err.err;
        call->error = err;
    }
    core_answer(store, calls);
}

static void write_down(struct store *store, struct call_list *calls)
{
    if (atomic_load(&store->failing) && clock_now_ns() - store->probed_ns >= PROBE_MS * 1000000ULL)
        probe(store);
    if (calls->first == NULL)
        return;
    if (atomic_load(&store->failing))
        refuse_failing(store, calls);
    else
        commit(store, calls);
}

static void end_prune(struct store *store, struct prune *prune, int result, const struct error *err)
{
    struct call_list one = {0};

    prune->call.result = result;
    if (result < 0)
        prune->call.error = *err;
    call_list_add(&one, &prune->call);
    core_answer(store, &one);
}

static void prune_a_little(struct store *store)
{
    struct prune *prune = store->prune;
    struct chain_link head = store->applier.head;
    struct call_list none = {0};
    struct error err = {0};
    uint64_t before = prune->removed;

    (void)pthread_mutex_lock(&store->durability.gate);
    int r = database_run(&store->writer, STATEMENT_BEGIN, NULL, 0, NULL, &err);
    if (r == 0)
        r = prune_slice(prune, &store->applier, &err);
    r = finish(store, &head, r, &err);
    (void)pthread_mutex_unlock(&store->durability.gate);
    if (r == 0) {
        atomic_fetch_add(&store->pruned, prune->removed - before);
        durability_committed(&store->durability, &none, store->log_pages);
    }
    if (r < 0 || prune->phase == PRUNE_DONE) {
        store->prune = NULL;
        end_prune(store, prune, r, &err);
    }
}

/* Prunes are set aside, one at a time; the rest are batches. */
static void sort_out(struct store *store, struct call_list *calls, struct call_list *ret_batches)
{
    *ret_batches = (struct call_list){0};
    for (struct store_call *call = call_list_take(calls); call != NULL; call = call_list_take(calls)) {
        struct error busy;
        if (call->kind == CALL_BATCH)
            call_list_add(ret_batches, call);
        else if (store->prune == NULL)
            store->prune = (struct prune *)call;
        else
            end_prune(store, (struct prune *)call, error_set(&busy, ERROR_LIMIT, EBUSY, "pruning already"), &busy);
    }
}

static uint64_t not_indexed(const struct store *store)
{
    return store->applier.head.number - store->applier.indexed.number;
}

static void index_some(struct store *store, uint64_t count)
{
    struct applier before = store->applier;
    struct call_list none = {0};
    struct error err = {0};

    (void)pthread_mutex_lock(&store->durability.gate);
    int r = database_run(&store->writer, STATEMENT_BEGIN, NULL, 0, NULL, &err);
    if (r == 0)
        r = apply_index(&store->applier, count, &err);
    r = finish(store, &before.head, r, &err);
    (void)pthread_mutex_unlock(&store->durability.gate);
    if (r == 0) {
        durability_committed(&store->durability, &none, store->log_pages);
        return;
    }
    store->applier.indexed = before.indexed;
    fail(store, &err);
}

static int wait_for_calls_ms(const struct store *store)
{
    if (store->prune != NULL)
        return 0;
    if (atomic_load(&store->failing))
        return PROBE_MS;
    uint64_t left = not_indexed(store);
    return left >= INDEX_MANY ? INDEX_MANY_MS : left > 0 ? INDEX_FEW_MS : -1;
}

/* After what was asked for is done. */
static void do_chores(struct store *store, bool is_idle)
{
    if (store->prune != NULL)
        prune_a_little(store);
    if (atomic_load(&store->failing))
        return;
    /* A part of them keeps up with any load, and takes a millisecond with most. */
    if (not_indexed(store) >= INDEX_AT_ONCE)
        index_some(store, not_indexed(store) / 4);
    else if (is_idle && not_indexed(store) > 0)
        index_some(store, INDEX_MANY);
}

void *writer_main(void *argument)
{
    struct store *store = argument;
    struct call_list calls;
    struct call_list batches;

    (void)sqlite3_wal_hook(store->writer.handle, note_pages, &store->log_pages);
    for (;;) {
        if (!queue_take(&store->writes, GROUP_CALLS, GROUP_BYTES, wait_for_calls_ms(store), &calls))
            break;
        bool is_idle = calls.first == NULL;
        sort_out(store, &calls, &batches);
        write_down(store, &batches);
        do_chores(store, is_idle);
    }
    if (store->prune != NULL)
        end_prune(store, store->prune, -ECANCELED, &(struct error){.err = ECANCELED});
    return NULL;
}
