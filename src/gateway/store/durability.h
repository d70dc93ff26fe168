/*
 * durability: what was committed reaches the disk, and the log the database, on threads of their own.
 *
 * A commit only writes to the log in the page cache. The syncer calls fdatasync on the log: a commit never waits for a
 * disk, and with STORE_SYNC_ALWAYS its answer waits here. The checkpointer copies the log into the database beside the
 * writer and other readers; SQLite starts the log anew when all of it has been copied. Under a load that never pauses
 * that moment would not come: then, and only once the log has grown large, the last few pages are copied while the
 * writer waits at the gate between two transactions.
 */
#pragma once

#include "gateway/store/call.h"
#include "gateway/store/database.h"

#include <pthread.h>
#include <stdatomic.h>

struct store;

struct durability {
    struct store *store;
    int log_fd;
    pthread_t syncer;
    pthread_t checkpointer;
    bool syncer_runs;
    bool checkpointer_runs;
    struct database database; /* the checkpointer's */

    pthread_mutex_t mutex;
    pthread_cond_t sync_wanted;
    pthread_cond_t checkpoint_wanted;
    bool always;
    bool dirty; /* committed, not synced */
    bool stopping;
    struct call_list waiting; /* committed, answered once synced */
    uint64_t pages;           /* in the log */
    uint64_t pages_seen;      /* by the last checkpoint */

    pthread_mutex_t gate; /* held by the writer during a transaction */
    atomic_uint_fast64_t syncs;
    atomic_uint_fast64_t checkpoints;
};

_must_use_ int durability_start(struct durability *durability, struct store *store, const char *path, bool always,
                                struct error *err);

/* After the writer has ended: sync what is left, answer it, end the threads. */
void durability_stop(struct durability *durability);

/* The writer has committed these, and the log has so many pages now. Takes the calls. */
void durability_committed(struct durability *durability, struct call_list *calls, uint64_t pages);
