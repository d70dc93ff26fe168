/*
 * Theory of operation. One keeper holds more and more idle sandboxes, each after its init's HELLO. On the way up to a
 * level, /proc/meminfo is read at 21 points. Used is everything that is not free and not file cache:
 *
 *     MemTotal - MemFree - Buffers - Cached + Shmem
 *
 * so anonymous memory, tmpfs, both kinds of slab, page tables, kernel stacks, per-CPU memory and what has no line of
 * its own all count, whoever it is charged to. File cache does not: the pages of /usr and of init are there once for
 * all. What one sandbox costs is the median of the slopes between any two points (Theil-Sen): a compiler that starts
 * or ends somewhere else on the machine bends a few of the 210 slopes, not their median. The same is done for each
 * line, to show what the sum is made of. `left` is what remained for each after all were destroyed; the kernel keeps
 * some of it for next time (slabs that are not full, memory cgroups that die slowly).
 */
#include "many.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/sys.h"
#include "client.h"
#include "quiet.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

enum {
    POINTS = 21,
    SLOPES = POINTS * (POINTS - 1) / 2,
    SETTLE_US = 3000000,
    ROUNDS_MAX = 10000,
    ROUNDS_PER_MOMENT = 10
};

#define MEMORY_LINES(X)                                                                                                \
    X(MemTotal)                                                                                                        \
    X(MemFree)                                                                                                         \
    X(MemAvailable)                                                                                                    \
    X(Buffers)                                                                                                         \
    X(Cached)                                                                                                          \
    X(Shmem)                                                                                                           \
    X(AnonPages)                                                                                                       \
    X(SReclaimable)                                                                                                    \
    X(SUnreclaim)                                                                                                      \
    X(KernelStack)                                                                                                     \
    X(PageTables)                                                                                                      \
    X(Percpu)

#define LINE_ENUM(name) LINE_##name,
#define LINE_NAME(name) #name,
enum line { MEMORY_LINES(LINE_ENUM) LINE_USED, LINE_COUNT };
static const char *const line_names[] = {MEMORY_LINES(LINE_NAME) "used"};

struct memory {
    double kib[LINE_COUNT];
};

struct live {
    struct client client;
    struct guest *guests;
    size_t count;
    size_t room;
    unsigned rounds;
    struct quiet quiet;
    size_t own_fds; /* before the first sandbox */
    struct memory before;
};

static int memory_read(struct memory *memory, struct error *err)
{
    char text[8192];
    ssize_t n = fd_read_file(AT_FDCWD, "/proc/meminfo", text, sizeof text);

    if (n < 0)
        return error_set(err, ERROR_SYSTEM, (int)-n, "reading /proc/meminfo");
    for (int i = 0; i < LINE_USED; i++) {
        char name[32];
        int length = snprintf(name, sizeof name, "%s:", line_names[i]);
        const char *line = text;
        while (line != NULL && strncmp(line, name, (size_t)length) != 0)
            line = (line = strchr(line, '\n')) != NULL ? line + 1 : NULL;
        memory->kib[i] = line != NULL ? strtod(line + length, NULL) : 0;
    }
    memory->kib[LINE_USED] = memory->kib[LINE_MemTotal] - memory->kib[LINE_MemFree] - memory->kib[LINE_Buffers] -
                             memory->kib[LINE_Cached] + memory->kib[LINE_Shmem];
    return 0;
}

static size_t count_fds(pid_t pid)
{
    char path[64];
    size_t count = 0;

    (void)snprintf(path, sizeof path, "/proc/%d/fd", pid);
    DIR *folder = opendir(path);
    while (folder != NULL && readdir(folder) != NULL)
        count++;
    if (folder != NULL)
        (void)closedir(folder);
    return count;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

static double quantile(double *values, size_t count, double q)
{
    qsort(values, count, sizeof *values, compare);
    return count == 0 ? 0 : values[(size_t)(q * (double)(count - 1) + 0.5)];
}

static double slope(const struct memory *memory, const size_t *live, enum line line)
{
    double slopes[SLOPES];
    size_t count = 0;

    for (size_t i = 0; i < POINTS; i++) {
        for (size_t j = 0; j < i; j++) {
            if (live[i] > live[j])
                slopes[count++] = (memory[i].kib[line] - memory[j].kib[line]) / (double)(live[i] - live[j]);
        }
    }
    return quantile(slopes, count, 0.5);
}

static int grow(struct live *live, size_t target, struct error *err)
{
    while (live->count < target) {
        struct guest *guest = &live->guests[live->count];
        int r = client_create(&live->client, guest, err);
        if (r < 0)
            return r;
        live->count++;
        r = client_wait_ready(&live->client, guest, err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* All of them, or after an error as many as the keeper still answers for. */
static int shrink(struct live *live, struct error *err)
{
    int r = 0;

    while (r == 0 && live->count > 0) {
        r = client_destroy(&live->client, &live->guests[--live->count], err);
        if (r == 0)
            r = client_wait_gone(&live->client, live->count, err);
    }
    return r;
}

enum phase { PHASE_CREATE, PHASE_EXEC, PHASE_DESTROY, PHASE_COUNT };
static const char *const phase_names[] = {"create", "exec", "destroy"};

struct times {
    double phases_us[PHASE_COUNT][ROUNDS_MAX];
    double steps_us[STEP_COUNT][ROUNDS_MAX];
};

/* One more sandbox: ready, `true` run in it, gone. */
static int time_one(struct live *live, struct times *times, size_t round, struct error *err)
{
    struct guest guest = {.fd = -1};
    uint64_t at_ns[PHASE_COUNT + 1] = {clock_now_ns()};
    size_t before = live->client.live;
    int r = client_create(&live->client, &guest, err);

    if (r == 0)
        r = client_wait_ready(&live->client, &guest, err);
    at_ns[1] = clock_now_ns();
    for (int step = 0; step < STEP_COUNT; step++)
        times->steps_us[step][round] = (double)live->client.steps_ns[step] / 1e3;
    if (r == 0)
        r = client_run_true(&live->client, &guest, err);
    at_ns[2] = clock_now_ns();
    if (r == 0)
        r = client_destroy(&live->client, &guest, err);
    if (r == 0)
        r = client_wait_gone(&live->client, before, err);
    at_ns[3] = clock_now_ns();
    close_fd(&guest.fd);
    for (int phase = 0; phase < PHASE_COUNT; phase++)
        times->phases_us[phase][round] = (double)(at_ns[phase + 1] - at_ns[phase]) / 1e3;
    return r;
}

static void print_times(const char *key, const char *const *names, const uint32_t *order, size_t count,
                        double (*values)[ROUNDS_MAX], size_t rounds)
{
    (void)printf(", \"%s\": {", key);
    for (size_t i = 0; i < count; i++) {
        const char *name = names != NULL ? names[i] : step_name(order[i]);
        double *of = values[names != NULL ? i : order[i]];
        double p50 = quantile(of, rounds, 0.5);
        (void)printf("%s\"%s\": [%.1f, %.1f]", i == 0 ? "" : ", ", name, p50, quantile(of, rounds, 0.99));
    }
    (void)printf("}");
}

static int time_many(struct live *live, struct error *err)
{
    static struct times times;
    uint32_t order[STEP_COUNT];
    int r = 0;

    for (uint32_t step = 0; step < STEP_COUNT; step++)
        order[step] = step;
    for (unsigned i = 0; r == 0 && i < live->rounds; i++) {
        if (i % ROUNDS_PER_MOMENT == 0)
            quiet_wait(&live->quiet, QUIET_LOOKS, QUIET_LOOK_MS);
        r = time_one(live, &times, i, err);
    }
    if (r == 0) {
        print_times("phases_us", phase_names, NULL, PHASE_COUNT, times.phases_us, live->rounds);
        /* Without "none" and "request", which take no time, and "init", which is not timed. */
        print_times("steps_us", NULL, order + STEP_IDS, STEP_INIT - STEP_IDS, times.steps_us, live->rounds);
    }
    return r;
}

static int climb(struct live *live, size_t level, struct error *err)
{
    struct memory memory[POINTS];
    size_t counts[POINTS] = {0};
    size_t start = live->count;
    uint64_t growing_ns = 0;
    int r = 0;

    for (size_t i = 0; r == 0 && i < POINTS; i++) {
        uint64_t start_ns = clock_now_ns();
        counts[i] = start + (level - start) * i / (POINTS - 1);
        r = grow(live, counts[i], err);
        growing_ns += clock_now_ns() - start_ns;
        quiet_wait(&live->quiet, QUIET_LOOKS, QUIET_LOOK_MS);
        if (r == 0)
            r = memory_read(&memory[i], err);
    }
    if (r < 0)
        return r;
    (void)printf(", \"all_created_ms\": %.1f, \"memory_kib\": {", (double)growing_ns / 1e6);
    for (int line = LINE_MemAvailable; line < LINE_COUNT; line++)
        (void)printf("%s\"%s\": %.1f", line == LINE_MemAvailable ? "" : ", ", line_names[line],
                     slope(memory, counts, (enum line)line));
    (void)printf(", \"end_to_end\": %.1f}",
                 (memory[POINTS - 1].kib[LINE_USED] - live->before.kib[LINE_USED]) / (double)level);
    return 0;
}

static int at_level(struct live *live, size_t level, struct error *err)
{
    struct memory after;
    quiet_wait(&live->quiet, QUIET_LOOKS, QUIET_LOOK_MS);
    int r = memory_read(&live->before, err);

    (void)printf("{\"live\": %zu", level);
    if (r == 0 && level > 0)
        r = climb(live, level, err);
    if (r < 0)
        return r;
    if (level > 0)
        (void)printf(", \"fds\": {\"keeper and client\": %.3f, \"zygote, in all\": %zu}",
                     (double)(count_fds(getpid()) - live->own_fds) / (double)level, count_fds(live->client.zygote) - 2);
    r = time_many(live, err);
    uint64_t start_ns = clock_now_ns();
    if (r == 0)
        r = shrink(live, err);
    if (r < 0 || level == 0)
        return r;
    (void)printf(", \"all_destroyed_ms\": %.1f", (double)(clock_now_ns() - start_ns) / 1e6);
    (void)usleep(SETTLE_US);
    r = memory_read(&after, err);
    (void)printf(", \"left_kib\": %.1f", (after.kib[LINE_USED] - live->before.kib[LINE_USED]) / (double)level);
    return r;
}

int live_measure(const struct many_options *options, unsigned rounds, const size_t *levels, size_t level_count,
                 struct error *err)
{
    struct live live = {.rounds = rounds < ROUNDS_MAX ? rounds : ROUNDS_MAX};
    int r = client_start(&live.client, options->init, options->state, err);

    for (size_t i = 0; i < level_count; i++)
        live.room = levels[i] > live.room ? levels[i] : live.room;
    live.guests = calloc(live.room + 1, sizeof *live.guests);
    if (r == 0 && live.guests == NULL)
        r = error_set(err, ERROR_SYSTEM, ENOMEM, "measuring");
    live.client.times = true;
    quiet_init(&live.quiet);
    (void)printf("{\"levels\": [");
    /* The first one builds the template and opens what is opened once. */
    if (r == 0)
        r = grow(&live, 1, err);
    if (r == 0)
        r = shrink(&live, err);
    live.own_fds = count_fds(getpid());
    for (size_t i = 0; r == 0 && i <= level_count; i++) {
        (void)printf("%s", i == 0 ? "" : ",\n");
        r = at_level(&live, i == 0 ? 0 : levels[i - 1], err);
        (void)printf("}");
    }
    (void)printf("], \"busy\": %.3f}\n", quiet_busy(&live.quiet));
    quiet_release(&live.quiet);
    client_stop(&live.client);
    free(live.guests);
    return r;
}
