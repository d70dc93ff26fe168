/*
 * recorder: what the engine wants written down, and when it may go on. No answer is given before it is recorded.
 *
 * Implemented by whoever makes the engine: the gateway's main binds it to the store. Each call takes what it is given
 * before it returns (the views live no longer) and later calls `done` on the loop's thread, never from within the
 * call, exactly once, with 0 or -errno. `done` may be NULL. Calls about one sandbox or one exec are carried out in the
 * order in which they are made. Recorded means: it survives the end of this process.
 *
 * -ENOBUFS: too much waits, and nothing of this call was recorded. An exec's output and end are then given again a
 * little later. When a call fails otherwise, the exec or sandbox it is about is ended, and nothing new starts until one
 * has succeeded.
 */
#pragma once

#include "gateway/engine/exec.h"
#include "gateway/engine/sandbox.h"

enum { RECORDER_PIECES = 64 };

typedef void (*recorder_done)(void *request, int status);

/* A sandbox as it is now: new, or changed. Everything that sandbox_adopt() wants back. */
struct recorder_sandbox {
    const char *id;
    uint64_t number; /* the keeper's name for it */
    enum sandbox_state state;
    enum sandbox_reason reason;
    const struct sandbox_settings *settings;
    uint64_t created_ms;
    uint64_t ended_ms; /* 0: it has not */
};

/* An exec that was started. Everything that exec_adopt() wants back. */
struct recorder_exec {
    const char *id;
    const char *sandbox;
    const char *owner;
    uint64_t channel;
    const struct exec_settings *settings;
    uint64_t started_ms;
};

/*
 * The next bytes of an exec's output. `seq` counts the bytes of both streams in the order in which they came, `offset`
 * those of this stream alone. What lies before `keep_from` is not wanted any more.
 */
struct recorder_output {
    const char *exec;
    uint64_t seq;
    enum exec_stream stream;
    uint64_t offset;
    const uint8_t *data;
    size_t length;
    uint64_t keep_from;
};

struct recorder_end {
    const char *exec;
    const struct exec_result *result;
    uint64_t ended_ms;
    const struct recorder_output *pieces; /* the last of its output, up to RECORDER_PIECES */
    size_t piece_count;
};

/*
 * A place for output that comes faster than it can be recorded one by one. What was written to it is recorded, and
 * found again after the end of this process, until it is ended.
 */
struct recorder_spool;

struct recorder {
    void *context;
    void (*sandbox)(void *context, const struct recorder_sandbox *sandbox, recorder_done done, void *request);
    void (*exec)(void *context, const struct recorder_exec *exec, recorder_done done, void *request);
    /* Up to RECORDER_PIECES that follow one another, recorded together or not at all; so is an end with its pieces. */
    void (*output)(void *context, const struct recorder_output *pieces, size_t count, recorder_done done,
                   void *request);
    /* There is room for more output. Other calls find some even when there is not. NULL: always. */
    bool (*has_room)(void *context);
    void (*end)(void *context, const struct recorder_end *end, recorder_done done, void *request);

    /* For the newest `cap` bytes of an exec's output. NULL: there is none to be had. May be NULL itself. */
    struct recorder_spool *(*spool)(void *context, const char *exec, uint64_t cap);
    /*
     * Up to RECORDER_PIECES pieces and two windows of bytes that follow one another. One write at a time, and their
     * data stays where it is until `done`. When one fails, output() still has to be tried with all that it was not
     * given.
     */
    void (*spool_write)(struct recorder_spool *spool, const struct recorder_output *pieces, size_t count,
                        recorder_done done, void *request);
    /* `remove`: output() was given what is kept of it, and all of that is recorded. */
    void (*spool_end)(struct recorder_spool *spool, bool remove);
};
