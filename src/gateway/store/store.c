/*
 * The loop's side of the store: what is asked for goes into a queue, what was answered comes back through `answers`
 * and a uv_async. Caps count calls from submission to delivery, so that a loop which doesn't get to its answers counts
 * too.
 */
#include "gateway/store/store.h"

#include "base/cleanup.h"
#include "gateway/store/core.h"
#include "gateway/store/prune.h"
#include "gateway/store/recover.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { READS_MAX = 4096 };

void core_answer(struct store *store, struct call_list *calls)
{
    if (calls->first == NULL)
        return;
    (void)pthread_mutex_lock(&store->answers_mutex);
    bool wake = store->answers.first == NULL;
    call_list_join(&store->answers, calls);
    (void)pthread_mutex_unlock(&store->answers_mutex);
    if (wake)
        (void)uv_async_send(&store->async);
}

void core_set_failure(struct store *store, const struct error *failure)
{
    (void)pthread_mutex_lock(&store->failure_mutex);
    store->failure = failure != NULL ? *failure : (struct error){0};
    (void)pthread_mutex_unlock(&store->failure_mutex);
    atomic_store(&store->failing, failure != NULL);
    /* The writer may be asleep; it is to try again by itself. */
    if (failure != NULL)
        queue_poke(&store->writes);
    if (failure != NULL && failure->err == ENOSPC)
        queue_poke(&store->spools);
}

void core_get_failure(struct store *store, struct error *ret_failure)
{
    (void)pthread_mutex_lock(&store->failure_mutex);
    *ret_failure = store->failure;
    (void)pthread_mutex_unlock(&store->failure_mutex);
    if (ret_failure->err == 0)
        ret_failure->err = EIO;
}

static bool is_too_much(const struct store *store, const struct store_call *call)
{
    if (call->kind == CALL_QUERY)
        return store->reads_out >= READS_MAX;
    /* A spool has one write at a time, whose bytes are its writer's, and one end, which gives back more than it takes.
     */
    if (call->kind == CALL_SPOOL || call->kind == CALL_SPOOL_END)
        return false;
    return store->writes_out >= STORE_QUEUE_CALLS || store->writes_out_bytes + call->bytes > store->options.queue_bytes;
}

static void count(struct store *store, const struct store_call *call, int sign)
{
    if (call->kind == CALL_QUERY) {
        store->reads_out += (size_t)sign;
    } else {
        store->writes_out += (size_t)sign;
        store->writes_out_bytes += sign > 0 ? call->bytes : -call->bytes;
    }
    if (store->closing || store->reads_out + store->writes_out > 0)
        uv_ref((uv_handle_t *)&store->async);
    else
        uv_unref((uv_handle_t *)&store->async);
}

static struct queue *queue_of(struct store *store, enum call_kind kind)
{
    bool is_spool = kind == CALL_SPOOL || kind == CALL_SPOOL_END;

    return kind == CALL_QUERY ? &store->reads : is_spool ? &store->spools : &store->writes;
}

void core_submit(struct store *store, struct store_call *call)
{
    if (call->result == 0 && store->closing)
        call->result = error_set(&call->error, ERROR_SYSTEM, ESHUTDOWN, "the store is closing");
    else if (call->result == 0 && is_too_much(store, call))
        call->result = error_set(&call->error, ERROR_LIMIT, ENOBUFS, "too much waits for the database");
    count(store, call, 1);
    if (call->result < 0) {
        struct call_list one = {0};
        call_list_add(&one, call);
        core_answer(store, &one);
    } else {
        queue_push(queue_of(store, call->kind), call);
    }
}

void store_cancel(struct store_call *call)
{
    call->cancelled = true;
}

static void free_parts(struct store *store)
{
    queue_release(&store->writes);
    queue_release(&store->reads);
    queue_release(&store->spools);
    (void)pthread_mutex_destroy(&store->answers_mutex);
    (void)pthread_mutex_destroy(&store->failure_mutex);
    close_fd(&store->lock_fd);
    free(store);
}

static void free_store(uv_handle_t *handle)
{
    struct store *store = handle->data;
    void (*closed)(void *) = store->closed;
    void *data = store->closed_data;

    free_parts(store);
    if (closed != NULL)
        closed(data);
}

static void deliver(uv_async_t *async)
{
    struct store *store = async->data;
    struct call_list calls = {0};

    (void)pthread_mutex_lock(&store->answers_mutex);
    call_list_join(&calls, &store->answers);
    bool finished = store->finished;
    (void)pthread_mutex_unlock(&store->answers_mutex);
    for (struct store_call *call = call_list_take(&calls); call != NULL; call = call_list_take(&calls)) {
        if (!call->cancelled)
            call->deliver(call);
        count(store, call, -1);
        call_free(call);
    }
    if (!finished)
        return;
    if (store->reads_out + store->writes_out > 0) { /* refused meanwhile, and delivered next time */
        (void)uv_async_send(async);
        return;
    }
    if (store->closer_runs)
        (void)pthread_join(store->closer_thread, NULL);
    uv_close((uv_handle_t *)async, free_store);
}

static void stop_threads(struct store *store)
{
    if (store->writer_runs)
        (void)pthread_join(store->writer_thread, NULL);
    if (store->reader_runs)
        (void)pthread_join(store->reader_thread, NULL);
    if (store->spooler_runs)
        (void)pthread_join(store->spooler_thread, NULL);
    durability_stop(&store->durability);
    database_release(&store->reader);
    database_release(&store->writer);
}

/* Closing copies the log into the database: not on the loop's thread. */
static void *closer_main(void *argument)
{
    struct store *store = argument;

    stop_threads(store);
    (void)pthread_mutex_lock(&store->answers_mutex);
    store->finished = true;
    (void)pthread_mutex_unlock(&store->answers_mutex);
    (void)uv_async_send(&store->async);
    return NULL;
}

void store_close(struct store *store, void (*closed)(void *data), void *data)
{
    store->closing = true;
    store->closed = closed;
    store->closed_data = data;
    uv_ref((uv_handle_t *)&store->async);
    queue_close(&store->writes);
    queue_close(&store->reads);
    queue_close(&store->spools);
    store->closer_runs = pthread_create(&store->closer_thread, NULL, closer_main, store) == 0;
    if (!store->closer_runs)
        (void)closer_main(store); /* late is better than never */
}

bool store_can_record(const struct store *store)
{
    return !atomic_load(&store->failing);
}

bool store_has_room(const struct store *store)
{
    return store->writes_out < STORE_QUEUE_CALLS / 2 && store->writes_out_bytes < store->options.queue_bytes / 2;
}

void store_get_stats(struct store *store, struct store_stats *ret_stats)
{
    struct error failure;

    core_get_failure(store, &failure);
    *ret_stats = (struct store_stats){
        .batches = atomic_load(&store->batches),
        .groups = atomic_load(&store->groups),
        .syncs = atomic_load(&store->durability.syncs),
        .checkpoints = atomic_load(&store->durability.checkpoints),
        .calls_waiting = store->writes_out + store->reads_out,
        .bytes_waiting = store->writes_out_bytes,
        .pruned = atomic_load(&store->pruned),
        .busy_us = atomic_load(&store->busy_us),
        .stall_us = atomic_load(&store->stall_us),
        .spools_lost = store->spools_lost,
    };
    (void)pthread_mutex_lock(&store->durability.mutex);
    ret_stats->wal_pages = store->durability.pages;
    (void)pthread_mutex_unlock(&store->durability.mutex);
    memcpy(ret_stats->failure, failure.message, sizeof ret_stats->failure);
}

static void deliver_prune(struct store_call *call)
{
    struct prune *prune = (struct prune *)call;
    struct store_outcome outcome = {.result = call->result, .message = call->result < 0 ? call->error.message : NULL};

    if (prune->done != NULL)
        prune->done(call->data, &outcome);
}

struct store_call *store_prune(struct store *store, const struct store_retention *retention, store_done_fn done,
                               void *data)
{
    struct prune *prune = call_new(store, sizeof *prune, 0);

    if (prune == NULL)
        return NULL;
    prune->call.kind = CALL_PRUNE;
    prune->call.deliver = deliver_prune;
    prune->call.data = data;
    prune->done = done;
    prune->retention = *retention;
    core_submit(store, &prune->call);
    return &prune->call;
}

static int open_database(struct store *store, struct recovery *recovery, struct error *err)
{
    int r = schema_lock(store->folder, &store->lock_fd, err);

    if (r == 0)
        r = recover_space(recovery, err);
    if (r == 0)
        r = schema_prepare_file(store->path, err);
    if (r < 0)
        return r;
    r = database_open(&store->writer, store->path, DATABASE_WRITER, err);
    if (r < 0)
        return schema_explain(store->path, err);
    r = schema_upgrade(&store->writer, store->path, err);
    if (r < 0)
        return r;
    /* A first write: whatever would keep us from recording is told now, and the log exists. */
    r = database_run(&store->writer, STATEMENT_PROBE, NULL, 0, NULL, err);
    if (r == 0)
        r = apply_load_chain(&store->applier, err);
    if (r == 0)
        r = database_open(&store->reader, store->path, DATABASE_READER, err);
    if (r < 0)
        error_wrap(err, "writing to %s: is the disk full, or read-only?", store->path);
    return r;
}

/* On a full disk the spools have to make room before the database can be opened. */
static int open_all(struct store *store, struct error *err)
{
    struct recovery recovery = {
        .applier = &store->applier, .boot = store->options.boot, .reserve_bytes = store->options.reserve_bytes};

    (void)snprintf(recovery.folder, sizeof recovery.folder, "%s/" SPOOL_FOLDER, store->folder);
    int r = open_database(store, &recovery, err);
    if (r == 0)
        r = recover_spools(&recovery, err);
    store->spool_bytes = recovery.left_bytes;
    store->spools_lost = recovery.lost;
    return r;
}

static int start_threads(struct store *store, struct error *err)
{
    int r = durability_start(&store->durability, store, store->path, store->options.sync == STORE_SYNC_ALWAYS, err);

    if (r < 0)
        return r;
    store->writer_runs = pthread_create(&store->writer_thread, NULL, writer_main, store) == 0;
    store->reader_runs = pthread_create(&store->reader_thread, NULL, reader_main, store) == 0;
    store->spooler_runs = pthread_create(&store->spooler_thread, NULL, spooler_main, store) == 0;
    if (!store->writer_runs || !store->reader_runs || !store->spooler_runs)
        return error_set(err, ERROR_SYSTEM, EAGAIN, "starting the store's threads");
    return 0;
}

static int fill_in(struct store *store, const struct store_options *options, struct error *err)
{
    store->options = *options;
    store->lock_fd = -1;
    store->durability.log_fd = -1;
    if (store->options.queue_bytes == 0)
        store->options.queue_bytes = STORE_QUEUE_BYTES;
    if (store->options.output_keep_bytes == 0)
        store->options.output_keep_bytes = STORE_OUTPUT_KEEP_BYTES;
    if (store->options.spool_bytes == 0)
        store->options.spool_bytes = STORE_SPOOL_BYTES;
    if (store->options.reserve_bytes == 0)
        store->options.reserve_bytes = STORE_RESERVE_BYTES;
    store->applier =
        (struct applier){.database = &store->writer, .output_keep_bytes = store->options.output_keep_bytes};
    queue_init(&store->writes);
    queue_init(&store->reads);
    queue_init(&store->spools);
    (void)pthread_mutex_init(&store->answers_mutex, NULL);
    (void)pthread_mutex_init(&store->failure_mutex, NULL);
    int length = snprintf(store->folder, sizeof store->folder, "%s", options->folder);
    if (length >= (int)sizeof store->folder ||
        snprintf(store->path, sizeof store->path, "%s/%s", options->folder,
                 options->name != NULL ? options->name : "hutch.db") >= (int)sizeof store->path)
        return error_set(err, ERROR_INVALID, ENAMETOOLONG, "the state folder %.64s...", options->folder);
    return 0;
}

int store_open(const struct store_options *options, uv_loop_t *loop, struct store **ret_store, struct error *err)
{
    struct store *store = calloc(1, sizeof *store);

    if (store == NULL || sodium_init() < 0) {
        free(store);
        return error_set(err, ERROR_SYSTEM, ENOMEM, "opening the store");
    }
    int r = fill_in(store, options, err);
    if (r == 0)
        r = open_all(store, err);
    if (r == 0)
        r = start_threads(store, err);
    if (r == 0)
        r = uv_async_init(loop, &store->async, deliver);
    if (r < 0) {
        queue_close(&store->writes);
        queue_close(&store->reads);
        queue_close(&store->spools);
        stop_threads(store);
        free_parts(store);
        return r;
    }
    store->async.data = store;
    uv_unref((uv_handle_t *)&store->async);
    *ret_store = store;
    return 0;
}
