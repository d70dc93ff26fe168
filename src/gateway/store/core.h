/*
 * core: the store from the inside, for its own files.
 *
 * Five threads beside the loop's: the writer commits everything that came in while it committed, the reader answers
 * queries one after the other, the spooler writes what is too much for the writer into files, the syncer makes durable
 * what was committed, the checkpointer moves the log into the database. Calls go to the first three through queues and
 * come back through one list and a uv_async.
 */
#pragma once

#include "gateway/store/apply.h"
#include "gateway/store/call.h"
#include "gateway/store/database.h"
#include "gateway/store/durability.h"
#include "gateway/store/schema.h"
#include "gateway/store/store.h"

#include <stdatomic.h>

#define SPOOL_FOLDER "spool"

struct prune;

struct store {
    struct store_options options;
    char folder[SCHEMA_PATH_MAX];
    char path[SCHEMA_PATH_MAX];
    int lock_fd;

    /* The loop's thread alone. */
    uv_async_t async;
    size_t writes_out; /* pushed and not delivered yet */
    size_t writes_out_bytes;
    size_t reads_out;
    bool closing;
    void (*closed)(void *data);
    void *closed_data;

    pthread_mutex_t answers_mutex;
    struct call_list answers;
    bool finished; /* the threads have ended; under the same mutex */

    struct queue writes;
    struct queue reads;
    struct queue spools;
    pthread_t writer_thread;
    pthread_t reader_thread;
    pthread_t spooler_thread;
    pthread_t closer_thread;
    bool writer_runs;
    bool reader_runs;
    bool spooler_runs;
    bool closer_runs;
    struct database writer;
    struct database reader;
    struct durability durability;

    /* The writer's thread alone. */
    struct applier applier;
    struct prune *prune;
    uint64_t probed_ns;
    uint64_t log_pages;

    /* The spooler's thread alone. */
    uint64_t spool_bytes; /* that the files take */
    struct spool *spool_list;

    uint64_t spools_lost; /* of the start */
    atomic_bool failing;
    pthread_mutex_t failure_mutex;
    struct error failure;
    atomic_uint_fast64_t batches;
    atomic_uint_fast64_t groups;
    atomic_uint_fast64_t pruned;
    atomic_uint_fast64_t busy_us;
    atomic_uint_fast64_t stall_us;
};

/* The loop's thread: queue a call, or have it answered with what is wrong with it. */
void core_submit(struct store *store, struct store_call *call);

/* Any thread: these have their results. */
void core_answer(struct store *store, struct call_list *calls);

/* Any thread: nothing can be recorded at present, or it can again (NULL). */
void core_set_failure(struct store *store, const struct error *failure);
void core_get_failure(struct store *store, struct error *ret_failure);

void *writer_main(void *store);
void *reader_main(void *store);
void *spooler_main(void *store);
