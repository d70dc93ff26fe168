/*
 * engine: sandboxes, execs, files, pool and events of one gateway, over one libuv loop, in its thread.
 *
 * Used by the surfaces, which translate. The engine holds one conversation with the keeper and one with the init of
 * each sandbox; it knows nothing of HTTP, and reaches the store through recorder.h. One descriptor per sandbox.
 *
 * Pointers to sandboxes and execs that a caller was given live until the caller returns to the loop; what is kept is
 * the id. Callbacks come from the loop, never from within the call that they answer.
 *
 * Errors have a code that a surface translates: ERROR_NOT_FOUND, ERROR_INVALID, ERROR_LIMIT (too many), ERROR_DENIED,
 * ERROR_SYSTEM; engine_is_not_running() tells "the sandbox or exec is not running" from other things that are invalid.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

struct engine;
struct recorder;
struct wire_message;

enum { ENGINE_ID_SIZE = 32 }; /* "sb_" or "ex_", 26 characters, NUL */

struct engine_options {
    uv_loop_t *loop;
    int keeper_fd;  /* the gateway's end of the conversation; becomes the engine's */
    uint32_t start; /* how often a gateway was started: counted in the store, so that no two have the same, from 1 */
    const struct recorder *recorder;
    uint32_t sandboxes_max;    /* live ones of callers; the pool's come on top */
    uint32_t execs_max;        /* running at once */
    uint64_t ring_bytes_max;   /* memory for output of execs that run; 0: no limit */
    uint64_t result_keep_ms;   /* how long an exec's result stays readable after its end */
    uint64_t result_bytes_max; /* memory for output of execs that have ended; the oldest go first */
    uint32_t stall_ms;         /* a follower that takes nothing for so long is dropped; 0: 30 s */
    uint32_t events_kept;      /* 0: 4096 */
    void (*lost)(void *data);  /* the keeper has ended the conversation: nothing more can be done */
    /* What the keeper says that is about no sandbox; the descriptors are the receiver's. NULL: nothing is expected */
    void (*heard)(void *data, const struct wire_message *message, int *fds, size_t fd_count);
    void *data;
};

typedef void (*engine_done)(void *data);

_must_use_ int engine_new(const struct engine_options *options, struct engine **ret_engine, struct error *err);

/*
 * Live sandboxes stay the keeper's, for another gateway to adopt. No callback but `closed` comes after this. Followers,
 * subscribers and jobs are to be freed before.
 */
void engine_close(struct engine *engine, engine_done closed, void *data);

/* Everything has been adopted or disowned: what earlier gateways left in it is cleared away, the pool is filled. */
void engine_go(struct engine *engine);

/* End all sandboxes with the reason `drained` and refuse new ones; `done` when none is left. */
void engine_drain(struct engine *engine, engine_done done, void *data);

/* Something to the keeper that is about no sandbox and is not answered. */
_must_use_ int engine_tell_keeper(struct engine *engine, const struct wire_message *message);

/* Other limits from now on. What is over them already goes on. */
void engine_set_limits(struct engine *engine, uint32_t sandboxes_max, uint32_t execs_max);

struct engine_figures {
    uint64_t sandboxes; /* live, of callers */
    uint64_t pooled;
    uint64_t execs; /* running */
    uint64_t execs_kept;
    uint64_t result_bytes;
    uint64_t created; /* since the start */
    uint64_t failed;
    uint64_t ended;
    uint64_t executed;
    uint64_t hostile; /* sandboxes that were ended for what their init sent */
    bool is_recording;
};
void engine_figures(const struct engine *engine, struct engine_figures *ret_figures);

/* What was asked of it needs a sandbox or exec that runs, and this one does not. */
static inline bool engine_is_not_running(const struct error *err)
{
    return err->code == ERROR_INVALID && err->err == ESHUTDOWN;
}
