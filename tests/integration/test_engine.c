/*
 * test_engine: the engine with a real keeper and real sandboxes: what surfaces will do with it, and what goes wrong.
 * Every case has a world of its own.
 *
 *     test_engine HUTCH-INIT [CASE]
 */
#include "engine_cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool failed;

bool check_holds(bool holds, const char *what, int line)
{
    if (!holds) {
        (void)printf("# line %d: %s does not hold\n", line, what);
        failed = true;
    }
    return holds;
}

static void note_sandbox(void *data, struct sandbox *sandbox, const struct error *err)
{
    struct outcome *outcome = data;
    struct sandbox_info info;

    sandbox_get(sandbox, &info);
    (void)snprintf(outcome->id, sizeof outcome->id, "%s", info.id);
    outcome->err = err != NULL ? *err : (struct error){0};
    outcome->is_done = true;
}

sandbox_done outcome_note = note_sandbox;

struct sandbox *make_with(struct world *world, const struct sandbox_settings *settings, struct outcome *outcome)
{
    struct sandbox *sandbox = NULL;

    *outcome = (struct outcome){0};
    if (sandbox_create(world->engine, settings, note_sandbox, outcome, &sandbox, &outcome->err) < 0) {
        (void)printf("# not created: %s\n", outcome->err.message);
        return NULL;
    }
    if (!WORLD_UNTIL(world, outcome->is_done) || outcome->err.code != ERROR_NONE) {
        (void)printf("# not made: %s\n", outcome->err.message);
        return NULL;
    }
    return sandbox_find(world->engine, outcome->id, settings->owner);
}

struct sandbox *make(struct world *world)
{
    struct sandbox_settings settings = world_settings("alice");
    struct outcome outcome;

    return make_with(world, &settings, &outcome);
}

static void hear(void *data, struct exec_follower *follower)
{
    struct heard *heard = data;
    struct exec_chunk chunk;
    int r;

    if (heard->is_deaf)
        return;
    while ((r = exec_follower_next(follower, &chunk)) > 0) {
        heard->is_whole = heard->is_whole && chunk.seq == heard->next;
        heard->next = chunk.seq + chunk.length;
        heard->bytes += chunk.length;
        if (buf_append(&heard->streams[chunk.stream], chunk.data, chunk.length) < 0)
            heard->is_whole = heard->bytes > HEARD_MAX && heard->is_whole;
    }
    heard->end = r;
    if (r == -ENODATA) {
        struct exec_info info;
        exec_get(exec_follower_exec(follower), &info);
        heard->has_result = info.result != NULL;
        if (info.result != NULL)
            heard->result = *info.result;
    }
    if (r < 0)
        exec_follower_free(TAKE_PTR(heard->follower));
}

bool follow(struct exec *exec, uint64_t after, struct heard *heard)
{
    struct exec_follow_options options = {.after = after};
    struct error err = {0};

    *heard = (struct heard){.next = after, .is_whole = true, .streams = {buf_init(HEARD_MAX), buf_init(HEARD_MAX)}};
    if (exec_follow(exec, &options, hear, heard, &heard->follower, &err) < 0) {
        (void)printf("# not followed: %s\n", err.message);
        return false;
    }
    hear(heard, heard->follower);
    return true;
}

void hear_now(struct heard *heard)
{
    heard->is_deaf = false;
    hear(heard, heard->follower);
}

void heard_release(struct heard *heard)
{
    exec_follower_free(heard->follower);
    heard->follower = NULL;
    buf_release(&heard->streams[0]);
    buf_release(&heard->streams[1]);
}

struct exec *start_with(struct sandbox *sandbox, const struct exec_settings *settings)
{
    struct exec *exec = NULL;
    struct error err = {0};

    if (sandbox == NULL || exec_start(sandbox, settings, NULL, NULL, &exec, &err) < 0)
        (void)printf("# not started: %s\n", err.message);
    return exec;
}

bool run(struct world *world, struct sandbox *sandbox, const char *script, struct heard *heard)
{
    struct exec_settings settings = world_shell(script);
    struct exec *exec = start_with(sandbox, &settings);

    return exec != NULL && follow(exec, 0, heard) && WORLD_UNTIL(world, heard->end < 0) && heard->has_result;
}

bool says(const struct heard *heard, enum exec_stream stream, const char *text)
{
    const struct buf *buf = &heard->streams[stream];
    bool is_same = buf->length == strlen(text) &&
                   memcmp(buf->data == NULL ? (const uint8_t *)"" : buf->data, text, buf->length) == 0;

    if (!is_same)
        (void)printf("# heard: %.*s\n", (int)(buf->length < 300 ? buf->length : 300), (const char *)buf->data);
    return is_same;
}

bool run_says(struct world *world, struct sandbox *sandbox, const char *script, const char *text)
{
    struct heard heard = {0};
    bool is_so = run(world, sandbox, script, &heard) && says(&heard, EXEC_STDOUT, text);

    heard_release(&heard);
    return is_so;
}

static void note_drained(void *data)
{
    *(bool *)data = true;
}

bool drain(struct world *world)
{
    bool drained = false;

    engine_drain(world->engine, note_drained, &drained);
    return WORLD_UNTIL(world, drained);
}

int main(int argc, char **argv)
{
    static struct world world;
    const struct engine_case *cases[] = {engine_cases_execs, engine_cases_lives, engine_cases_files};
    int failures = 0;
    int number = 0;

    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (const struct engine_case *each = cases[i]; each->name != NULL; each++) {
            struct error err = {0};
            if (argc > 2 && strcmp(argv[2], each->name) != 0)
                continue;
            failed = false;
            if (world_start(&world, argv[1], NULL, &err) < 0) {
                (void)printf("Bail out! %s\n", err.message);
                return 1;
            }
            engine_go(world.engine);
            each->run(&world);
            world_stop(&world);
            failures += failed;
            (void)printf("%sok %d - %s\n", failed ? "not " : "", ++number, each->name);
        }
    }
    (void)printf("1..%d\n", number);
    return failures > 0;
}
