/*
 * records: what the store keeps, as the rest of the gateway sees it.
 *
 * Strings end with a NUL; NULL means that there is none. Times are milliseconds since 1970, 0 means never. In a write
 * everything is copied; in a read everything lives until the callback returns.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { STORE_HASH_BYTES = 32, STORE_KEY_BYTES = 32 };

struct store_sandbox {
    uint64_t row;    /* in reads: its place in lists */
    uint64_t number; /* what the keeper calls it */
    const char *id;
    const char *owner; /* the principal who made it */
    const char *agent;
    const char *status;
    const char *template_name;
    const char *profile;
    const char *settings; /* JSON */
    const char *reason;   /* of its end */
    int64_t created_ms;
    int64_t expires_ms;
    int64_t ended_ms;
    int64_t used_ms;
};

struct store_exec {
    uint64_t row; /* in reads: its place in lists */
    const char *id;
    const char *sandbox;
    const char *owner;
    const char *agent;
    uint64_t channel;    /* what init calls it */
    const char *command; /* JSON: an array, or a string for the shell */
    const char *folder;
    const char *settings; /* JSON: whatever else is needed to go on with it */
    uint64_t flags;       /* the engine's own */
    const char *state;
    int64_t started_ms;
    int64_t deadline_ms;
    int64_t ended_ms; /* 0: it runs, or ran when the gateway ended */
    int64_t exit_code;
    bool timed_out;
    bool truncated;
    uint64_t duration_us;
    uint64_t cpu_us;
    uint64_t memory_peak_bytes;
    uint64_t stdout_bytes; /* that it wrote, kept or not */
    uint64_t stderr_bytes;
};

/*
 * A piece of an exec's output. `offset` counts the bytes of its own stream before it, `position` those of both streams:
 * the cursor that clients read on from. What was not kept leaves a gap in both.
 */
struct store_output {
    const char *exec;
    uint8_t stream; /* 1 or 2 */
    uint64_t offset;
    uint64_t position;
    const void *data;
    size_t length;
    uint64_t keep_bytes; /* in writes: older pieces of this exec beyond so many bytes go; 0: the store's own cap */
};

enum store_verdict { STORE_ALLOWED, STORE_DENIED, STORE_FAILED };

struct store_audit {
    uint64_t number; /* in reads */
    int64_t time_ms; /* 0 in writes: now */
    const char *principal;
    const char *agent;
    const char *sandbox;
    const char *exec;
    const char *action; /* "exec.end" and the like */
    enum store_verdict verdict;
    const char *detail; /* JSON */
    bool with_output;   /* in writes: take the hash of what `exec` has written; in reads: there is one */
    uint8_t output_hash[STORE_HASH_BYTES];
    uint8_t previous[STORE_HASH_BYTES];
    uint8_t hash[STORE_HASH_BYTES];
};

enum store_scope { STORE_SCOPE_RUN, STORE_SCOPE_READ, STORE_SCOPE_ADMIN };

struct store_key {
    uint64_t row; /* in reads: its place in lists */
    const char *id;
    const char *name;
    uint8_t hash[STORE_HASH_BYTES]; /* keyed BLAKE2b of the secret */
    enum store_scope scope;
    const char *agent; /* that it is bound to, or NULL */
    int64_t created_ms;
    int64_t expires_ms;
    int64_t revoked_ms;
    int64_t used_ms;
};

struct store_setting {
    const char *name;
    const char *value;
};
