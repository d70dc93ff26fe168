/*
 * bench-api: what sandboxes cost over a daemon's REST door, beside the same work done by hand.
 *
 *     bench-api PORT KEY live SAMPLES             sh -c true, and the same in a sandbox that is there
 *     bench-api PORT KEY fresh SAMPLES PAUSE_MS   true, and true in a sandbox that was just claimed
 *     bench-api PORT KEY node SAMPLES             node -v, and a new sandbox with node -v in it
 *     bench-api PORT KEY sustained CLIENTS MS     create, true, destroy, as often as possible
 *     bench-api PORT KEY burst CLIENTS            so many at once, each one new sandbox with true in it
 *     bench-api PORT KEY output MIB TURNS         a command's output, and the same through a pipe: medians
 *     bench-api PORT KEY crowd LIVE SAMPLES       live and fresh once more, while so many others are idle
 *
 * Each kind of sample takes turns with its bare counterpart. Prints one JSON object of lists of nanoseconds, or of
 * figures that say their unit.
 */
#include "base/cleanup.h"
#include "base/clock.h"
#include "door.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

enum {
    SAMPLES_MAX = 100000,
    CLIENTS_MAX = 256,
    LIVE_MAX = 16000,
    ID_SIZE = 64,
    WARM_UP = 5,
    OUTPUT_SECONDS = 120,
    TURNS_MAX = 32,
    SETTLE_SECONDS = 2
};

#define SANDBOXES "/api/v1/sandboxes"

struct bench {
    const char *port;
    const char *key;
    struct door door;
    uint64_t *bare_ns;
    uint64_t *ours_ns;
    uint64_t *create_ns; /* the first part of ours_ns, where there is one */
    size_t samples;
};

static int run_bare(char *const *argv, struct error *err)
{
    static char *const environment[] = {NULL};
    posix_spawn_file_actions_t actions;
    int status = -1;
    pid_t pid;

    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    int r = posix_spawn(&pid, argv[0], &actions, NULL, argv, environment);
    (void)posix_spawn_file_actions_destroy(&actions);
    if (r != 0)
        return error_set(err, ERROR_SYSTEM, r, "starting %s", argv[0]);
    if (waitpid(pid, &status, 0) != pid || status != 0)
        return error_set(err, ERROR_SYSTEM, 0, "%s ended with status %d", argv[0], status);
    return 0;
}

static int create(struct door *door, char id[ID_SIZE], struct error *err)
{
    int r = door_call(door, "POST", SANDBOXES, "{}", 201, err);

    return r < 0 ? r : door_word(door, "id", id, ID_SIZE, err);
}

static int destroy(struct door *door, const char *id, struct error *err)
{
    char path[128];

    (void)snprintf(path, sizeof path, SANDBOXES "/%s", id);
    return door_call(door, "DELETE", path, NULL, 204, err);
}

/* One command, argv as JSON; the answer has its result. */
static int execute(struct door *door, const char *id, const char *argv, struct error *err)
{
    char path[128];
    char json[256];

    (void)snprintf(path, sizeof path, SANDBOXES "/%s/execs", id);
    (void)snprintf(json, sizeof json, "{\"argv\": %s, \"wait\": true}", argv);
    int r = door_call(door, "POST", path, json, 200, err);
    if (r == 0 && memmem(door->body.data, door->body.length, "\"exit_code\":0", 13) == NULL &&
        memmem(door->body.data, door->body.length, "\"exit_code\": 0", 14) == NULL)
        return error_set(err, ERROR_PROTOCOL, 0, "%s in a sandbox failed: %.*s", argv,
                         (int)(door->body.length < 200 ? door->body.length : 200), (const char *)door->body.data);
    return r;
}

static int shell_true(struct door *door, const char *id, struct error *err)
{
    char path[128];

    (void)snprintf(path, sizeof path, SANDBOXES "/%s/tools/execute", id);
    return door_call(door, "POST", path, "{\"tool\": \"shell_exec\", \"arguments\": {\"command\": \"true\"}}", 200,
                     err);
}

static int new_with(struct door *door, const char *argv, char id[ID_SIZE], uint64_t *ret_created_ns, struct error *err)
{
    int r = create(door, id, err);

    *ret_created_ns = clock_now_ns();
    return r < 0 ? r : execute(door, id, argv, err);
}

static void print_list(const char *name, const uint64_t *values, size_t count, const char *end)
{
    (void)printf("\"%s\": [", name);
    for (size_t i = 0; i < count; i++)
        (void)printf("%s%llu", i == 0 ? "" : ", ", (unsigned long long)values[i]);
    (void)printf("]%s", end);
}

static int sample_live(struct bench *bench, size_t count, struct error *err)
{
    char *const bare[] = {(char[]){"/bin/sh"}, (char[]){"-c"}, (char[]){"true"}, NULL};
    char id[ID_SIZE];
    int r = create(&bench->door, id, err);

    for (size_t i = 0; r == 0 && i < count + WARM_UP; i++) {
        uint64_t start_ns = clock_now_ns();
        r = run_bare(bare, err);
        uint64_t middle_ns = clock_now_ns();
        if (r == 0)
            r = shell_true(&bench->door, id, err);
        if (i >= WARM_UP) {
            bench->bare_ns[i - WARM_UP] = middle_ns - start_ns;
            bench->ours_ns[i - WARM_UP] = clock_now_ns() - middle_ns;
        }
    }
    bench->samples = count;
    return r < 0 ? r : destroy(&bench->door, id, err);
}

/* A new sandbox each time, with `inside` run in it; its end is not part of the sample. */
static int sample_new(struct bench *bench, size_t count, unsigned pause_ms, char *const *bare, const char *inside,
                      struct error *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < count + WARM_UP; i++) {
        char id[ID_SIZE];
        (void)usleep(pause_ms * 1000);
        uint64_t start_ns = clock_now_ns();
        r = run_bare(bare, err);
        uint64_t middle_ns = clock_now_ns();
        uint64_t created_ns = middle_ns;
        if (r == 0)
            r = new_with(&bench->door, inside, id, &created_ns, err);
        uint64_t end_ns = clock_now_ns();
        if (i >= WARM_UP) {
            bench->bare_ns[i - WARM_UP] = middle_ns - start_ns;
            bench->ours_ns[i - WARM_UP] = end_ns - middle_ns;
            bench->create_ns[i - WARM_UP] = created_ns - middle_ns;
        }
        if (r == 0)
            r = destroy(&bench->door, id, err);
    }
    bench->samples = count;
    return r;
}

static int sample_fresh(struct bench *bench, size_t count, unsigned pause_ms, struct error *err)
{
    char *const bare[] = {(char[]){"/bin/true"}, NULL};

    return sample_new(bench, count, pause_ms, bare, "[\"true\"]", err);
}

static int sample_node(struct bench *bench, size_t count, struct error *err)
{
    static const char *const places[] = {"/usr/bin/node", "/usr/local/bin/node"};
    char *direct[] = {NULL, (char[]){"-v"}, NULL};
    char inside[64];

    for (size_t i = 0; i < sizeof places / sizeof *places && direct[0] == NULL; i++) {
        if (access(places[i], X_OK) == 0)
            direct[0] = strdup(places[i]);
    }
    if (direct[0] == NULL)
        return error_set(err, ERROR_NOT_FOUND, ENOENT, "node is not below /usr");
    (void)snprintf(inside, sizeof inside, "[\"%s\", \"-v\"]", direct[0]);
    int r = sample_new(bench, count, 0, direct, inside, err);
    free(direct[0]);
    return r;
}

struct client {
    const struct bench *bench;
    pthread_barrier_t *start;
    uint64_t limit_ms; /* 0: once */
    uint64_t count;
    uint64_t elapsed_ns;
    struct error err;
    int r;
};

static void *work(void *context)
{
    struct client *client = context;
    struct door door;
    uint64_t created_ns;
    char id[ID_SIZE];

    client->r = door_open(&door, client->bench->port, client->bench->key, &client->err);
    (void)pthread_barrier_wait(client->start);
    uint64_t start_ns = clock_now_ns();
    do {
        if (client->r == 0)
            client->r = new_with(&door, "[\"true\"]", id, &created_ns, &client->err);
        client->elapsed_ns = clock_now_ns() - start_ns;
        if (client->r == 0)
            client->r = destroy(&door, id, &client->err);
        client->count++;
    } while (client->r == 0 && client->limit_ms > 0 && clock_now_ns() - start_ns < client->limit_ms * 1000000U);
    if (client->limit_ms > 0)
        client->elapsed_ns = clock_now_ns() - start_ns;
    door_close(&door);
    return NULL;
}

static int together(struct bench *bench, size_t count, uint64_t limit_ms, struct error *err)
{
    static struct client clients[CLIENTS_MAX];
    pthread_t threads[CLIENTS_MAX];
    pthread_barrier_t start;
    double rate = 0;
    int r = 0;

    if (count < 1 || count > CLIENTS_MAX)
        return error_set(err, ERROR_INVALID, 0, "1 to %d clients", CLIENTS_MAX);
    (void)pthread_barrier_init(&start, NULL, (unsigned)count);
    for (size_t i = 0; i < count; i++) {
        clients[i] = (struct client){.bench = bench, .start = &start, .limit_ms = limit_ms};
        if (pthread_create(&threads[i], NULL, work, &clients[i]) != 0)
            return error_set(err, ERROR_SYSTEM, EAGAIN, "starting a client");
    }
    for (size_t i = 0; i < count; i++) {
        (void)pthread_join(threads[i], NULL);
        if (clients[i].r < 0) {
            *err = clients[i].err;
            r = clients[i].r;
        }
        bench->ours_ns[i] = clients[i].elapsed_ns;
        rate += (double)clients[i].count * 1e9 / (double)clients[i].elapsed_ns;
    }
    (void)pthread_barrier_destroy(&start);
    bench->samples = count;
    if (r == 0 && limit_ms > 0)
        (void)printf("{\"per_second\": %.1f}\n", rate);
    return r;
}

/* The same bytes through a pipe, read in the same pieces. */
static int pipe_rate(const char *count, double *ret_rate, struct error *err)
{
    char *const argv[] = {(char[]){"head"}, (char[]){"-c"}, strdup(count), (char[]){"/dev/zero"}, NULL};
    static uint8_t piece[65536];
    posix_spawn_file_actions_t actions;
    uint64_t total = 0;
    int ends[2];
    ssize_t n;
    pid_t pid;

    if (argv[2] == NULL || pipe2(ends, O_CLOEXEC) < 0)
        return error_errno(err, "making a pipe");
    uint64_t start_ns = clock_now_ns();
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    int r = posix_spawnp(&pid, argv[0], &actions, NULL, argv, NULL);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)close(ends[1]);
    while (r == 0 && (n = read(ends[0], piece, sizeof piece)) > 0)
        total += (uint64_t)n;
    *ret_rate = (double)total * 1e3 / (double)(clock_now_ns() - start_ns);
    (void)close(ends[0]);
    free(argv[2]);
    if (r != 0 || waitpid(pid, NULL, 0) != pid)
        return error_set(err, ERROR_SYSTEM, r, "running head");
    return 0;
}

/* The same in a sandbox, over the door, from the start of the command to the last byte. */
static int door_rate(struct bench *bench, const char *id, const char *count, double *ret_rate, struct error *err)
{
    char exec[ID_SIZE];
    char path[256];
    char json[256];
    uint64_t bytes = 0;

    (void)snprintf(path, sizeof path, SANDBOXES "/%s/execs", id);
    (void)snprintf(json, sizeof json,
                   "{\"argv\": [\"head\", \"-c\", \"%s\", \"/dev/zero\"], \"wait\": false, \"timeout_seconds\": %d}",
                   count, OUTPUT_SECONDS);
    uint64_t start_ns = clock_now_ns();
    int r = door_call(&bench->door, "POST", path, json, 201, err);
    if (r == 0)
        r = door_word(&bench->door, "id", exec, sizeof exec, err);
    (void)snprintf(path, sizeof path, "/api/v1/execs/%s/output?follow=true", exec);
    if (r == 0)
        r = door_count(&bench->door, path, &bytes, err);
    *ret_rate = (double)bytes * 1e3 / (double)(clock_now_ns() - start_ns);
    if (r == 0 && bytes != strtoull(count, NULL, 10))
        r = error_set(err, ERROR_PROTOCOL, 0, "%llu bytes came of %s", (unsigned long long)bytes, count);
    return r;
}

static int compare(const void *a, const void *b)
{
    double difference = *(const double *)a - *(const double *)b;

    return (difference > 0) - (difference < 0);
}

static int measure_output(struct bench *bench, uint64_t mib, size_t turns, struct error *err)
{
    double bare[TURNS_MAX];
    double ours[TURNS_MAX];
    char id[ID_SIZE];
    char count[32];

    turns = turns < 1 ? 1 : turns > TURNS_MAX ? TURNS_MAX : turns;
    int r = create(&bench->door, id, err);
    (void)snprintf(count, sizeof count, "%llu", (unsigned long long)mib << 20);
    for (size_t i = 0; r == 0 && i < turns; i++) {
        r = pipe_rate(count, &bare[i], err);
        if (r == 0)
            r = door_rate(bench, id, count, &ours[i], err);
    }
    if (r < 0)
        return r;
    qsort(bare, turns, sizeof *bare, compare);
    qsort(ours, turns, sizeof *ours, compare);
    (void)printf("{\"pipe_mb_per_second\": %.0f, \"ours_mb_per_second\": %.0f}\n", bare[turns / 2], ours[turns / 2]);
    return destroy(&bench->door, id, err);
}

static void print_samples(struct bench *bench, const char *prefix, const char *end)
{
    char name[32];

    (void)snprintf(name, sizeof name, "%sbare", prefix);
    print_list(name, bench->bare_ns, bench->samples, ", ");
    if (bench->create_ns[0] > 0) {
        (void)snprintf(name, sizeof name, "%screate", prefix);
        print_list(name, bench->create_ns, bench->samples, ", ");
        bench->create_ns[0] = 0;
    }
    (void)snprintf(name, sizeof name, "%sours", prefix);
    print_list(name, bench->ours_ns, bench->samples, end);
}

/* What could still be had of the machine's memory. */
static uint64_t available_kib(void)
{
    char line[128];
    unsigned long long kib = 0;
    FILE *file = fopen("/proc/meminfo", "re");

    while (file != NULL && kib == 0 && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "MemAvailable:", 13) == 0)
            kib = strtoull(line + 13, NULL, 10);
    }
    if (file != NULL)
        (void)fclose(file);
    return kib;
}

static int crowd(struct bench *bench, size_t live, size_t samples, struct error *err)
{
    static char ids[LIVE_MAX][ID_SIZE];
    size_t made = 0;
    int r = 0;

    if (live < 1 || live > LIVE_MAX)
        return error_set(err, ERROR_INVALID, 0, "1 to %d live sandboxes", LIVE_MAX);
    uint64_t before_kib = available_kib();
    uint64_t start_ns = clock_now_ns();
    for (; r == 0 && made < live; made += r == 0)
        r = create(&bench->door, ids[made], err);
    (void)printf("{\"all_created_ms\": %.0f, ", (double)(clock_now_ns() - start_ns) / 1e6);
    (void)sleep(SETTLE_SECONDS); /* the pool fills up again */
    (void)printf("\"each_kib\": %.0f, ", ((double)before_kib - (double)available_kib()) / (double)live);
    if (r == 0)
        r = sample_live(bench, samples, err);
    print_samples(bench, "live_", ", ");
    if (r == 0)
        r = sample_fresh(bench, samples, 50, err);
    print_samples(bench, "fresh_", "}\n");
    for (size_t i = 0; i < made; i++) {
        struct error ignored;
        int gone = destroy(&bench->door, ids[i], r == 0 ? err : &ignored);
        r = r == 0 ? gone : r;
    }
    return r;
}

static int measure(struct bench *bench, const char *kind, unsigned long first, unsigned long second, struct error *err)
{
    int r;

    if (strcmp(kind, "sustained") == 0)
        return together(bench, first, second, err);
    if (strcmp(kind, "output") == 0)
        return measure_output(bench, first, second, err);
    if (strcmp(kind, "crowd") == 0)
        return crowd(bench, first, second, err);
    if (strcmp(kind, "live") == 0)
        r = sample_live(bench, first, err);
    else if (strcmp(kind, "fresh") == 0)
        r = sample_fresh(bench, first, (unsigned)second, err);
    else if (strcmp(kind, "node") == 0)
        r = sample_node(bench, first, err);
    else if (strcmp(kind, "burst") == 0)
        r = together(bench, first, 0, err);
    else
        return error_set(err, ERROR_INVALID, 0, "no measurement is called %s", kind);
    if (r == 0) {
        (void)printf("{");
        print_samples(bench, "", "}\n");
    }
    return r;
}

int main(int argc, char **argv)
{
    struct error err = {0};
    struct bench bench = {.door = {.fd = -1}};

    if (argc < 5 || argc > 6) {
        (void)fprintf(stderr,
                      "usage: bench-api PORT KEY live|fresh|node|sustained|burst|output|crowd NUMBER [NUMBER]\n");
        return 2;
    }
    bench.port = argv[1];
    bench.key = argv[2];
    bench.bare_ns = calloc(SAMPLES_MAX + CLIENTS_MAX, sizeof *bench.bare_ns);
    bench.create_ns = calloc(SAMPLES_MAX + CLIENTS_MAX, sizeof *bench.create_ns);
    bench.ours_ns = calloc(SAMPLES_MAX + CLIENTS_MAX, sizeof *bench.ours_ns);
    unsigned long first = strtoul(argv[4], NULL, 10);
    unsigned long second = argc > 5 ? strtoul(argv[5], NULL, 10) : 0;
    (void)signal(SIGPIPE, SIG_IGN);
    int r = bench.bare_ns == NULL || bench.ours_ns == NULL || bench.create_ns == NULL || first > SAMPLES_MAX ||
                    second > SAMPLES_MAX
                ? error_set(&err, ERROR_INVALID, 0, "too many samples")
                : door_open(&bench.door, bench.port, bench.key, &err);
    if (r == 0)
        r = measure(&bench, argv[3], first, second, &err);
    if (r < 0)
        (void)fprintf(stderr, "bench-api: %s: %s\n", argv[3], err.message);
    door_close(&bench.door);
    free(bench.bare_ns);
    free(bench.ours_ns);
    free(bench.create_ns);
    return r < 0 ? 1 : 0;
}
