/*
 * bench-engine: what the engine adds to a command, beside fork and exec of the same command in the same program, turn
 * by turn. The recorder keeps nothing, the keeper is in the same thread: what HTTP and a store cost comes on top.
 *
 *     bench-engine HUTCH-INIT [ROUNDS]
 */
#include "world.h"

#include "base/clock.h"
#include "wire/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 200, ROUNDS_MAX = 2000, POOLED = 8, MIB = 1 << 20, FLOOD = 256 * MIB };

enum what { FORK_SHELL, FORK_TRUE, LIVE_SHELL, LIVE_TRUE, CREATE, RESTED_TRUE, CLAIM, FIRST_TRUE, SECOND_TRUE, WHATS };

static const char *const names[WHATS] = {
    [FORK_SHELL] = "fork+exec of sh -c true",      [FORK_TRUE] = "fork+exec of true",
    [LIVE_SHELL] = "exec of sh -c true, live",     [LIVE_TRUE] = "exec of true, live",
    [CREATE] = "create, until ready and recorded", [RESTED_TRUE] = "after a rest: fork+exec of true",
    [CLAIM] = "claim from the pool, recorded",     [FIRST_TRUE] = "its first exec of true",
    [SECOND_TRUE] = "its second exec of true",
};

static uint64_t times[WHATS][ROUNDS_MAX];
static const char *const shell[] = {"/bin/sh", "-c", "true", NULL};
static const char *const plain[] = {"/usr/bin/true", NULL};

struct wait {
    bool is_done;
    bool has_failed;
    uint64_t bytes;
};

static void fork_and_exec(const char *const *argv)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        (void)execv(argv[0], (char *const *)argv);
        _exit(127);
    }
    (void)waitpid(pid, &status, 0);
}

static void note_news(void *data, struct exec_follower *follower)
{
    struct wait *wait = data;
    struct exec_chunk chunk;
    int r;

    while ((r = exec_follower_next(follower, &chunk)) > 0)
        wait->bytes += chunk.length;
    wait->is_done = r < 0;
}

static bool execute(struct world *world, struct sandbox *sandbox, const char *const *argv, enum exec_mode mode,
                    uint64_t *ret_bytes)
{
    struct exec_settings settings = {
        .argv = argv, .uid = WORLD_USER, .filter = WIRE_FILTER_STANDARD, .mode = mode, .timeout_ms = 30000};
    struct exec_follow_options options = {0};
    struct exec_follower *follower = NULL;
    struct wait wait = {0};
    struct error err = {0};
    struct exec *exec = NULL;

    if (exec_start(sandbox, &settings, NULL, NULL, &exec, &err) < 0 ||
        exec_follow(exec, &options, note_news, &wait, &follower, &err) < 0) {
        (void)fprintf(stderr, "bench-engine: %s\n", err.message);
        return false;
    }
    while (!wait.is_done)
        (void)uv_run(world->loop, UV_RUN_ONCE);
    exec_follower_free(follower);
    *ret_bytes = wait.bytes;
    return true;
}

static void note_made(void *data, struct sandbox *sandbox, const struct error *err)
{
    struct wait *wait = data;

    (void)sandbox;
    wait->is_done = true;
    wait->has_failed = err != NULL;
}

static struct sandbox *create(struct world *world, uint64_t disk_bytes)
{
    struct sandbox_settings settings = world_settings("bench");
    struct sandbox *sandbox = NULL;
    struct wait wait = {0};
    struct error err = {0};

    settings.class.disk_bytes = disk_bytes;
    if (sandbox_create(world->engine, &settings, note_made, &wait, &sandbox, &err) < 0)
        return NULL;
    while (!wait.is_done)
        (void)uv_run(world->loop, UV_RUN_ONCE);
    return wait.has_failed ? NULL : sandbox;
}

static bool fill_pool(struct world *world)
{
    struct pool_target target = {
        .class = world_settings("").class, .limits = world_settings("").limits, .min_idle = POOLED, .max_idle = POOLED};
    struct error err = {0};

    return pool_set(world->engine, &target, 1, &err) == 0;
}

/* Until the pool is full and what was destroyed is gone: nobody else's work is to be measured. */
static void settle(struct world *world)
{
    struct pool_figures figures = {0};

    while (figures.idle < POOLED) {
        world_pass(world, 5);
        pool_figures(world->engine, &figures);
    }
    world_pass(world, 10);
}

static bool measure(struct world *world, struct sandbox *live, int round)
{
    uint64_t disk = world_settings("").class.disk_bytes;
    uint64_t start[WHATS + 1];
    uint64_t bytes;
    bool is_sound = true;

    start[0] = clock_now_ns();
    fork_and_exec(shell);
    start[1] = clock_now_ns();
    fork_and_exec(plain);
    start[2] = clock_now_ns();
    is_sound = execute(world, live, shell, EXEC_COLLECT, &bytes);
    start[3] = clock_now_ns();
    is_sound = is_sound && execute(world, live, plain, EXEC_COLLECT, &bytes);
    start[4] = clock_now_ns();
    struct sandbox *cold = create(world, disk - MIB);
    start[5] = clock_now_ns();
    if (cold == NULL || !is_sound)
        return false;
    sandbox_destroy(cold, SANDBOX_DESTROYED, NULL, NULL);
    for (size_t i = 0; i <= CREATE; i++)
        times[i][round] = start[i + 1] - start[i];
    settle(world);
    start[0] = clock_now_ns();
    fork_and_exec(plain);
    times[RESTED_TRUE][round] = clock_now_ns() - start[0];
    settle(world);
    start[1] = clock_now_ns();
    struct sandbox *fresh = create(world, disk);
    start[2] = clock_now_ns();
    is_sound = fresh != NULL && execute(world, fresh, plain, EXEC_COLLECT, &bytes);
    start[3] = clock_now_ns();
    is_sound = is_sound && execute(world, fresh, plain, EXEC_COLLECT, &bytes);
    start[4] = clock_now_ns();
    for (size_t i = 0; i < 3; i++)
        times[CLAIM + i][round] = start[i + 2] - start[i + 1];
    if (is_sound)
        sandbox_destroy(fresh, SANDBOX_DESTROYED, NULL, NULL);
    settle(world);
    return is_sound;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static double median_ms(enum what what, int rounds)
{
    qsort(times[what], (size_t)rounds, sizeof times[what][0], compare);
    return (double)times[what][rounds / 2] / 1e6;
}

int main(int argc, char **argv)
{
    static struct world world;
    static const char *const flood[] = {"/usr/bin/head", "-c", "268435456", "/dev/zero", NULL};
    int rounds = argc > 2 ? (int)strtol(argv[2], NULL, 10) : ROUNDS;
    struct error err = {0};
    uint64_t bytes = 0;

    if (argc < 2 || rounds < 1 || rounds > ROUNDS_MAX || world_start(&world, argv[1], NULL, &err) < 0) {
        (void)fprintf(stderr, "bench-engine: %s\n", err.message);
        return 1;
    }
    world.is_brief = true;
    engine_go(world.engine);
    struct sandbox *live = create(&world, 32 * MIB);
    bool is_sound = live != NULL && fill_pool(&world);
    if (is_sound)
        settle(&world);
    for (int round = 0; is_sound && round < rounds; round++)
        is_sound = measure(&world, live, round);
    uint64_t start = clock_now_ns();
    is_sound = is_sound && execute(&world, live, flood, EXEC_STREAM, &bytes) && bytes == FLOOD;
    double flood_s = (double)(clock_now_ns() - start) / 1e9;
    world_stop(&world);
    for (int what = 0; is_sound && what < WHATS; what++)
        (void)printf("%-36s %6.3f ms\n", names[what], median_ms((enum what)what, rounds));
    if (is_sound)
        (void)printf("%-36s %6.0f MB/s\n", "output to one follower", FLOOD / 1e6 / flood_s);
    return is_sound ? 0 : 1;
}
