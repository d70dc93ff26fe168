/*
 * query: reads. Each is answered with a page of rows that lives until the callback returns.
 *
 * Made on the loop's thread, run by the store's reader, one after the other. A read that is asked for after a write was
 * answered sees that write. A page holds at most QUERY_ROWS_MAX rows and QUERY_BYTES_MAX bytes; `next` leads to the
 * rest.
 */
#pragma once

#include "gateway/store/records.h"
#include "gateway/store/store.h"

enum { QUERY_ROWS_MAX = 1000, QUERY_BYTES_MAX = 16 << 20 };

struct store_page {
    int result;          /* 0, -ENOENT, -ENOBUFS (too many reads wait), -EIO ... */
    const char *message; /* NULL with 0 */
    size_t count;
    union {
        const struct store_sandbox *sandboxes;
        const struct store_exec *execs;
        const struct store_audit *audits;
        const struct store_output *outputs;
        const struct store_key *keys;
        const struct store_setting *settings;
    };
    uint64_t next; /* the cursor of what follows, 0 when nothing does */
};

typedef void (*store_page_fn)(void *data, const struct store_page *page);

/* NULL and false: whatever it is. Newest first. */
struct sandbox_filter {
    const char *id;
    const char *owner;
    const char *agent;
    const char *status;
    bool live; /* that have not ended */
    size_t limit;
    uint64_t cursor; /* `next` of the page before, or 0 */
};

struct exec_filter {
    const char *id;
    const char *sandbox;
    const char *owner;
    bool live;
    size_t limit;
    uint64_t cursor;
};

struct audit_filter {
    const char *sandbox;
    const char *agent;
    const char *principal;
    size_t limit;
    uint64_t cursor;
};

/*
 * NULL: no memory. An id that is not there is an empty page. At most one of an audit_filter's names is looked up by an
 * index; records that don't have the others are read and left out.
 */
_must_use_ struct store_call *query_sandboxes(struct store *store, const struct sandbox_filter *filter,
                                              store_page_fn done, void *data);
_must_use_ struct store_call *query_execs(struct store *store, const struct exec_filter *filter, store_page_fn done,
                                          void *data);
_must_use_ struct store_call *query_audit(struct store *store, const struct audit_filter *filter, store_page_fn done,
                                          void *data);
_must_use_ struct store_call *query_keys(struct store *store, size_t limit, uint64_t cursor, store_page_fn done,
                                         void *data);
_must_use_ struct store_call *query_settings(struct store *store, store_page_fn done, void *data);

/*
 * An exec's output from `position` on, oldest first, about `bytes` of it: the first piece is cut so that it starts
 * there. What is older than the oldest piece is gone; then the first piece's own position says how much.
 */
_must_use_ struct store_call *query_output(struct store *store, const char *exec, uint64_t position, size_t bytes,
                                           store_page_fn done, void *data);

/* Where an exec's recorded output ends: to go on after a restart. */
struct store_output_end {
    int result;
    uint64_t first; /* the position of the oldest byte that is left */
    uint64_t position;
    uint64_t offsets[2]; /* of the streams 1 and 2 */
};

typedef void (*store_output_end_fn)(void *data, const struct store_output_end *end);

_must_use_ struct store_call *query_output_end(struct store *store, const char *exec, store_output_end_fn done,
                                               void *data);

/*
 * Check the audit log from its anchor to its head. In slices, so that other reads go on meanwhile.
 */
struct store_verdict_of_log {
    int result;          /* 0: it could be read */
    const char *message; /* what is wrong with which record, NULL when all is well */
    uint64_t first;      /* the first record that is there */
    uint64_t last;
    uint64_t checked;
    bool intact;
    uint64_t bad; /* if not: the record that was changed, or is missing, or in the wrong place */
};

typedef void (*store_verified_fn)(void *data, const struct store_verdict_of_log *verdict);

_must_use_ struct store_call *query_verify(struct store *store, store_verified_fn done, void *data);
