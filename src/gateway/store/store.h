/*
 * store: what must not be lost: sandboxes, execs and their output, the audit log, keys, settings.
 *
 * One per gateway. Every call is made on the loop's thread, returns at once and is answered by a callback on the loop's
 * thread, never from within the call. Writes go through batches (batch.h), reads through queries (query.h), who may do
 * what is in credentials.h. No caller sees SQL: another database could stand behind the same calls.
 *
 * A write that was answered with 0 is *recorded*: it survives the end of every process of Hutch's. It is *durable*, and
 * survives the end of the machine, at most STORE_SYNC_MS later, or at once with STORE_SYNC_ALWAYS. When recording
 * fails, every write is answered with the error until the database takes writes again, which is tried several times a
 * second; store_can_record() says how it stands.
 *
 * The folder belongs to one store at a time, which a lock makes sure of. The program ignores SIGXFSZ, so that a limit
 * on file sizes is an error like a full disk.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

enum store_sync {
    STORE_SYNC_INTERVAL, /* durable a little later */
    STORE_SYNC_ALWAYS,   /* a write is answered when it is durable */
};

enum {
    STORE_SYNC_MS = 100,
    STORE_QUEUE_BYTES = 64 << 20,
    STORE_QUEUE_CALLS = 65536,
    STORE_OUTPUT_KEEP_BYTES = 64 << 20,
    STORE_RESERVE_BYTES = 64 << 20,
};

#define STORE_SPOOL_BYTES (UINT64_C(4) << 30)

struct store_options {
    const char *folder; /* exists, and nobody else writes to it */
    const char *name;   /* of the database in it; NULL: hutch.db */
    enum store_sync sync;
    uint64_t boot;              /* which start of the machine this is: what is not durable is of this one alone */
    size_t queue_bytes;         /* writes that wait; 0: STORE_QUEUE_BYTES */
    uint64_t output_keep_bytes; /* of one exec's output; 0: STORE_OUTPUT_KEEP_BYTES */
    uint64_t spool_bytes;   /* of all spools, or a quarter of the file system if that is less; 0: STORE_SPOOL_BYTES */
    uint64_t reserve_bytes; /* of the disk, which no spool takes; 0: STORE_RESERVE_BYTES */
};

struct store;
struct store_call;

/* How a write ended: 0 or a negative errno. */
struct store_outcome {
    int result;
    const char *message;   /* what a person should read, NULL with 0 */
    uint64_t audit_number; /* of the batch's last audit record, 0 when it had none */
};

typedef void (*store_done_fn)(void *data, const struct store_outcome *outcome);

/*
 * Open or make the database in `folder`. Blocks: for the start of the gateway, before its loop runs. A database that is
 * damaged, newer than we are or in use is left as it is, and the error says what to do.
 */
_must_use_ int store_open(const struct store_options *options, uv_loop_t *loop, struct store **ret_store,
                          struct error *err);

/* Answer what was asked, record what was given, and free the store; then `closed` is called. */
void store_close(struct store *store, void (*closed)(void *data), void *data);

/*
 * The callback of this call is no longer wanted and will not be made. A write is written all the same. A call lives
 * until its callback returns.
 */
void store_cancel(struct store_call *call);

bool store_can_record(const struct store *store);

/* Less than half of what may wait does. What can be given later, and is much, leaves the other half to what can't. */
bool store_has_room(const struct store *store);

/*
 * Remove what is too old or too much, in small slices between other writes. 0 means no limit. The audit log loses a
 * prefix and keeps an anchor; execs that ended go with their output, sandboxes that ended with all of their execs.
 */
struct store_retention {
    int64_t audit_before_ms; /* records older than this time */
    uint64_t audit_keep;     /* records beyond this count */
    int64_t ended_before_ms; /* execs and sandboxes that ended before */
    uint64_t database_bytes; /* execs that ended go, the oldest first, until it is no larger */
};

/* One at a time: -EBUSY in the outcome when one is running already. NULL: no memory. */
_must_use_ struct store_call *store_prune(struct store *store, const struct store_retention *retention,
                                          store_done_fn done, void *data);

struct store_stats {
    uint64_t batches; /* recorded so far */
    uint64_t groups;  /* transactions they took */
    uint64_t syncs;
    uint64_t checkpoints;
    uint64_t calls_waiting;
    uint64_t bytes_waiting;
    uint64_t wal_pages;
    uint64_t pruned;                 /* rows removed */
    uint64_t busy_us;                /* spent in transactions */
    uint64_t stall_us;               /* the longest transaction so far */
    uint64_t spools_lost;            /* at the start: removed for want of space, or not to be read */
    char failure[ERROR_MESSAGE_MAX]; /* why nothing can be recorded, or empty */
};

void store_get_stats(struct store *store, struct store_stats *ret_stats);
