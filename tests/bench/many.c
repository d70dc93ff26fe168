/*
 * bench-many: many sandboxes from one keeper.
 *
 *     bench-many INIT STATE rate SLICES SLICE_MS
 *     bench-many INIT STATE live ROUNDS LEVEL...
 *
 * INIT is hutch-init, STATE a folder that root alone may enter. Prints JSON. On an error or a signal it ends every
 * sandbox it has made, says why and exits with 1.
 */
#include "many.h"

#include "client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { LEVELS_MAX = 8, LEVEL_MAX = 16000, FDS_EACH = 3, FDS_MORE = 64 };

static int allow_descriptors(size_t most, struct error *err)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return error_errno(err, "asking for the limit of open files");
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
        return error_errno(err, "raising the limit of open files");
    if (limit.rlim_cur < most * FDS_EACH + FDS_MORE)
        return error_set(err, ERROR_LIMIT, 0,
                         "%zu sandboxes need more than the %llu open files we may have; ulimit -Hn", most,
                         (unsigned long long)limit.rlim_cur);
    return 0;
}

static int measure_live(const struct many_options *options, char **numbers, size_t count, struct error *err)
{
    unsigned long rounds = strtoul(numbers[0], NULL, 10);
    size_t levels[LEVELS_MAX];
    size_t most = 0;

    for (size_t i = 1; i < count; i++) {
        levels[i - 1] = strtoul(numbers[i], NULL, 10);
        if (levels[i - 1] < 1 || levels[i - 1] > LEVEL_MAX)
            return error_set(err, ERROR_INVALID, 0, "a level must be 1 to %d", LEVEL_MAX);
        most = levels[i - 1] > most ? levels[i - 1] : most;
    }
    int r = allow_descriptors(most, err);
    return r < 0 ? r : live_measure(options, (unsigned)rounds, levels, count - 1, err);
}

int main(int argc, char **argv)
{
    struct error err = {0};
    int r;

    if (argc < 6 || argc > 5 + LEVELS_MAX || (strcmp(argv[3], "rate") != 0 && strcmp(argv[3], "live") != 0)) {
        (void)fprintf(stderr, "usage: bench-many INIT STATE rate SLICES SLICE_MS\n"
                              "       bench-many INIT STATE live ROUNDS LEVEL...\n");
        return 2;
    }
    struct many_options options = {.init = argv[1], .state = argv[2]};
    client_catch_signals();
    if (strcmp(argv[3], "rate") == 0)
        r = rate_measure(&options, (unsigned)strtoul(argv[4], NULL, 10), (unsigned)strtoul(argv[5], NULL, 10), &err);
    else
        r = measure_live(&options, argv + 4, (size_t)argc - 4, &err);
    if (r < 0)
        (void)fprintf(stderr, "bench-many: %s\n", err.message);
    return r < 0 ? 1 : 0;
}
