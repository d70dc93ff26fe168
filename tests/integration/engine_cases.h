/*
 * engine_cases: what the cases of test_engine share.
 */
#pragma once

#include "base/cleanup.h"
#include "wire/wire.h"
#include "world.h"

enum { HEARD_MAX = 8 << 20 };

struct engine_case {
    const char *name;
    void (*run)(struct world *world);
};

/* Up to one without a name. */
extern const struct engine_case engine_cases_execs[];
extern const struct engine_case engine_cases_lives[];
extern const struct engine_case engine_cases_files[];

#define CHECK(condition) check_holds((condition), #condition, __LINE__)
bool check_holds(bool holds, const char *what, int line);

/* How something with a sandbox ended. */
struct outcome {
    bool is_done;
    struct error err;
    char id[ENGINE_ID_SIZE];
};
extern sandbox_done outcome_note; /* its data is a struct outcome */

/* What a follower has heard. */
struct heard {
    struct exec_follower *follower;
    struct buf streams[EXEC_STREAMS]; /* the first HEARD_MAX bytes */
    uint64_t next;
    uint64_t bytes;
    bool is_whole; /* nothing was missing in between */
    bool is_deaf;
    int end; /* below 0 when it has ended */
    bool has_result;
    struct exec_result result;
};

struct sandbox *make_with(struct world *world, const struct sandbox_settings *settings, struct outcome *outcome);
struct sandbox *make(struct world *world);
struct exec *start_with(struct sandbox *sandbox, const struct exec_settings *settings);
bool follow(struct exec *exec, uint64_t after, struct heard *heard);
void hear_now(struct heard *heard);
void heard_release(struct heard *heard);

/* Run a script to its end. */
bool run(struct world *world, struct sandbox *sandbox, const char *script, struct heard *heard);
bool says(const struct heard *heard, enum exec_stream stream, const char *text);
bool run_says(struct world *world, struct sandbox *sandbox, const char *script, const char *text);

/* What is to be written to an exec, and its end: now as much as is taken, the rest when there is room. */
struct typed {
    const uint8_t *data;
    size_t size;
    size_t sent;
};
void type(void *data, struct exec *exec, const struct error *err); /* its data is a struct typed */

/* Everything ends and the keeper says so. */
bool drain(struct world *world);
