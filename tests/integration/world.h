/*
 * world: an engine with all it needs, in one process and on one loop: a real keeper at the other end of a socket pair,
 * and a recorder that keeps everything in memory. Used by test_engine and bench-engine.
 *
 *     PROGRAM HUTCH-INIT
 */
#pragma once

#include "base/buf.h"
#include "gateway/engine/engine.h"
#include "gateway/engine/events.h"
#include "gateway/engine/exec.h"
#include "gateway/engine/files.h"
#include "gateway/engine/pool.h"
#include "gateway/engine/recorder.h"
#include "gateway/engine/sandbox.h"

enum { WORLD_WAIT_MS = 30000, WORLD_USER = 65534, NOTES_MAX = 512, NOTED_OUTPUT_MAX = 128 << 20 };

struct noted_exec {
    char id[ENGINE_ID_SIZE];
    char sandbox[ENGINE_ID_SIZE];
    uint64_t channel;
    enum exec_mode mode;
    bool has_stdin;
    uint64_t cap;
    uint64_t started_ms;
    uint64_t offsets[EXEC_STREAMS];
    struct buf output; /* of both streams, in its order */
    bool is_whole;     /* seq and offsets were always what came next */
    bool has_ended;
    struct exec_result result;
};

struct noted_sandbox {
    char id[ENGINE_ID_SIZE];
    uint64_t number;
    enum sandbox_state state;
    enum sandbox_reason reason;
    uint64_t created_ms;
    size_t records;
};

struct world {
    uv_loop_t *loop;
    struct keeper *keeper;
    int client_fd; /* the gateway's end, ours; the engine has a copy */
    int keeper_end;
    int init_fd;
    uv_poll_t keeper_poll;
    uv_timer_t keeper_timer;
    uv_timer_t alarm;
    uint32_t start;
    struct engine *engine;
    struct engine_options options;
    struct recorder recorder;
    uv_idle_t idle;
    struct noted_exec execs[NOTES_MAX];
    size_t exec_count;
    struct noted_sandbox sandboxes[NOTES_MAX];
    size_t sandbox_count;
    struct {
        recorder_done done;
        void *request;
    } waiting[4096];
    size_t waiting_count;
    int failure;   /* of each record from now on */
    bool is_stuck; /* nothing is written or answered from now on */
    bool is_brief; /* outputs are not kept: for measuring */
    bool is_late;
};

/* What is asked for when nothing else is. */
struct sandbox_settings world_settings(const char *owner);
struct exec_settings world_shell(const char *script);

_must_use_ int world_start(struct world *world, const char *init, const struct engine_options *options,
                           struct error *err);
void world_stop(struct world *world);

/* Let the loop run until it holds: false when it does not within WORLD_WAIT_MS. */
#define WORLD_UNTIL(world, condition)                                                                                  \
    ({                                                                                                                 \
        world_begin_waiting(world);                                                                                    \
        while (!(condition) && world_turn(world))                                                                      \
            continue;                                                                                                  \
        (condition);                                                                                                   \
    })
void world_begin_waiting(struct world *world);
bool world_turn(struct world *world);
void world_pass(struct world *world, uint64_t ms);

/* Throw the engine away as a crash would, nothing being recorded from now on, and make a new one on the same keeper. */
_must_use_ int world_crash(struct world *world, struct error *err);

struct noted_exec *world_exec(struct world *world, const char *id);
struct noted_sandbox *world_sandbox(struct world *world, const char *id);

/* The guest links of this process: how many, up to `size` of them. */
size_t world_guest_fds(const struct world *world, int *fds, size_t size);
