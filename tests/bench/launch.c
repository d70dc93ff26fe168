/*
 * bench-launch: how long whole commands take, from before the spawn until after the wait.
 *
 *     bench-launch FILE ROUNDS PAUSE_MS
 *
 * FILE has one command per line, fields separated by tabs: name, block, program, arguments. In each round every command
 * has its turn, in an order that is shuffled anew, so that a drift of the machine hits all alike. In its turn a command
 * runs `block` times. PAUSE_MS are waited before each run. Back to back (PAUSE_MS 0) the first run of a block is not
 * counted: a command that leaves work to a daemon, or to a process that outlives it, is to pay for that itself.
 *
 * A turn, after a pause each run, begins in a quiet moment (quiet.h); `busy` says which part of them did not.
 *
 * Standard input and output are /dev/null. A command that does not end with 0 within a minute ends the measurement:
 * what fails is no result. Prints one JSON object: {"busy": 0.0, "samples": {"NAME": [nanoseconds, ...], ...}}.
 */
#include "base/clock.h"
#include "base/sys.h"
#include "quiet.h"

#include <errno.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum {
    COMMANDS_MAX = 32,
    FIELDS_MAX = 96,
    LINE_MAX_BYTES = 16384,
    TIMEOUT_S = 60,
    ROUNDS_MAX = 100000,
    BLOCK_MAX = 1000,
};

struct command {
    char *line; /* owns what the others point into */
    char *name;
    char *argv[FIELDS_MAX];
    unsigned long block;
    uint64_t *samples_ns;
    size_t count;
};

struct bench {
    struct command commands[COMMANDS_MAX];
    size_t count;
    unsigned long rounds;
    unsigned long pause_ms;
    struct quiet quiet;
    int stderr_fd;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
};

static volatile pid_t running; /* 0 when none is */

/* Too late, or we are to stop: the command goes, and its exit status says the rest. */
static void stop_running(int number)
{
    pid_t pid = running;

    if (pid > 0)
        (void)kill(-pid, SIGKILL);
    if (number != SIGALRM)
        _exit(1);
}

static int parse_line(struct command *command, const char *line, unsigned long rounds)
{
    char *fields[FIELDS_MAX] = {NULL};
    size_t count = 0;
    char *rest = NULL;

    command->line = strdup(line);
    if (command->line == NULL)
        return -ENOMEM;
    for (char *field = strtok_r(command->line, "\t\n", &rest); field != NULL && count < FIELDS_MAX - 1;
         field = strtok_r(NULL, "\t\n", &rest))
        fields[count++] = field;
    if (count < 3)
        return -EINVAL;
    command->name = fields[0];
    command->block = strtoul(fields[1], NULL, 10);
    if (command->block < 1 || command->block > BLOCK_MAX)
        return -EINVAL;
    memcpy(command->argv, fields + 2, (count - 2) * sizeof *fields);
    command->samples_ns = calloc(rounds * command->block, sizeof *command->samples_ns);
    return command->samples_ns == NULL ? -ENOMEM : 0;
}

static int read_commands(struct bench *bench, const char *path)
{
    static char line[LINE_MAX_BYTES];
    FILE *file = fopen(path, "re");
    int r = file == NULL ? -errno : 0;

    while (r == 0 && fgets(line, sizeof line, file) != NULL) {
        if (bench->count == COMMANDS_MAX || strchr(line, '\n') == NULL)
            r = -E2BIG;
        else
            r = parse_line(&bench->commands[bench->count++], line, bench->rounds);
    }
    if (file != NULL)
        (void)fclose(file);
    return r == 0 && bench->count == 0 ? -EINVAL : r;
}

static void pause_for(unsigned long ms)
{
    struct timespec time = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};

    if (ms > 0)
        (void)nanosleep(&time, NULL);
}

/* What it said on standard error, for a person. */
static void tell_failure(const struct bench *bench, const struct command *command, int status)
{
    char text[2048];
    ssize_t n = pread(bench->stderr_fd, text, sizeof text - 1, 0);

    text[n > 0 ? n : 0] = '\0';
    (void)fprintf(stderr, "bench-launch: %s: %s %d\n%s", command->name, WIFSIGNALED(status) ? "signal" : "exit status",
                  WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), text);
}

static int prepare(struct bench *bench)
{
    bench->stderr_fd = memfd_create("stderr", MFD_CLOEXEC);
    int r = bench->stderr_fd < 0 ? errno : posix_spawn_file_actions_init(&bench->actions);

    if (r == 0)
        r = posix_spawnattr_init(&bench->attributes);
    if (r == 0)
        r = posix_spawn_file_actions_addopen(&bench->actions, 0, "/dev/null", O_RDONLY, 0);
    if (r == 0)
        r = posix_spawn_file_actions_addopen(&bench->actions, 1, "/dev/null", O_WRONLY, 0);
    if (r == 0)
        r = posix_spawn_file_actions_adddup2(&bench->actions, bench->stderr_fd, 2);
    if (r == 0)
        r = posix_spawnattr_setflags(&bench->attributes, POSIX_SPAWN_SETPGROUP);
    return -r;
}

static int time_command(const struct bench *bench, const struct command *command, uint64_t *ret_ns)
{
    extern char **environ;
    int status = 0;
    pid_t pid;

    if (ftruncate(bench->stderr_fd, 0) < 0 || lseek(bench->stderr_fd, 0, SEEK_SET) < 0)
        return -errno;
    (void)alarm(TIMEOUT_S);
    uint64_t start_ns = clock_now_ns();
    int r = posix_spawnp(&pid, command->argv[0], &bench->actions, &bench->attributes, command->argv, environ);
    if (r != 0) {
        (void)fprintf(stderr, "bench-launch: starting %s: %s\n", command->argv[0], strerror(r));
        return -r;
    }
    running = pid;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    uint64_t end_ns = clock_now_ns();
    running = 0;
    (void)alarm(0);
    if (status != 0) {
        tell_failure(bench, command, status);
        return -EIO;
    }
    *ret_ns = end_ns - start_ns;
    return 0;
}

/* A fixed seed: two runs of the same benchmark do the same. */
static void shuffle(size_t *order, size_t count)
{
    static uint32_t state = 0x9e3779b9;

    for (size_t i = count; i > 1; i--) {
        state = state * 1664525 + 1013904223;
        size_t other = (size_t)(((uint64_t)state * i) >> 32);
        size_t taken = order[i - 1];
        order[i - 1] = order[other];
        order[other] = taken;
    }
}

static int run_block(struct bench *bench, struct command *command)
{
    bool skip_first = bench->pause_ms == 0 && command->block > 1;

    if (bench->pause_ms == 0)
        quiet_wait(&bench->quiet, QUIET_LOOKS, QUIET_LOOK_MS);
    for (unsigned long run = 0; run < command->block; run++) {
        uint64_t ns = 0;
        pause_for(bench->pause_ms);
        /* One look: more would keep the CPU from the sleep that the pause is for. */
        if (bench->pause_ms > 0)
            quiet_wait(&bench->quiet, 1, (unsigned)bench->pause_ms);
        int r = time_command(bench, command, &ns);
        if (r < 0)
            return r;
        if (run > 0 || !skip_first)
            command->samples_ns[command->count++] = ns;
    }
    return 0;
}

static int run_rounds(struct bench *bench)
{
    size_t order[COMMANDS_MAX] = {0};
    int r = 0;

    for (size_t i = 0; i < bench->count; i++)
        order[i] = i;
    for (unsigned long round = 0; r == 0 && round < bench->rounds; round++) {
        shuffle(order, bench->count);
        for (size_t i = 0; r == 0 && i < bench->count; i++)
            r = run_block(bench, &bench->commands[order[i]]);
    }
    return r;
}

static void print(const struct bench *bench)
{
    (void)printf("{\"busy\": %.3f, \"samples\": ", quiet_busy(&bench->quiet));
    for (size_t i = 0; i < bench->count; i++) {
        const struct command *command = &bench->commands[i];
        (void)printf("%s\"%s\": [", i == 0 ? "{" : ",\n", command->name);
        for (size_t sample = 0; sample < command->count; sample++)
            (void)printf("%s%llu", sample == 0 ? "" : ",", (unsigned long long)command->samples_ns[sample]);
        (void)printf("]");
    }
    (void)printf("}}\n");
}

int main(int argc, char **argv)
{
    static struct bench bench;

    if (argc == 4) {
        bench.rounds = strtoul(argv[2], NULL, 10);
        bench.pause_ms = strtoul(argv[3], NULL, 10);
    }
    if (bench.rounds == 0 || bench.rounds > ROUNDS_MAX) {
        (void)fprintf(stderr, "usage: bench-launch FILE ROUNDS PAUSE_MS\n");
        return 2;
    }
    int r = read_commands(&bench, argv[1]);
    if (r < 0) {
        (void)fprintf(stderr, "bench-launch: reading %s: %s\n", argv[1], strerror(-r));
        return 2;
    }
    struct sigaction action = {.sa_handler = stop_running};
    (void)sigaction(SIGALRM, &action, NULL);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    quiet_init(&bench.quiet);
    r = prepare(&bench);
    if (r == 0)
        r = run_rounds(&bench);
    if (r == 0)
        print(&bench);
    for (size_t i = 0; i < bench.count; i++) {
        free(bench.commands[i].line);
        free(bench.commands[i].samples_ns);
    }
    return r < 0 ? 1 : 0;
}
