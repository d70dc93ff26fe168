#include "quiet.h"

#include "base/cleanup.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>

enum { MOMENT_PATIENCE_MS = 2000, PATIENCE_MS = 60000 };

void quiet_init(struct quiet *quiet)
{
    *quiet = (struct quiet){.stat_fd = open("/proc/stat", O_RDONLY | O_CLOEXEC), .patience_ms = PATIENCE_MS};
}

void quiet_release(struct quiet *quiet)
{
    close_fd(&quiet->stat_fd);
}

static bool is_quiet(const struct quiet *quiet)
{
    static char text[65536];
    ssize_t n = pread(quiet->stat_fd, text, sizeof text - 1, 0);

    text[n > 0 ? n : 0] = '\0';
    const char *line = strstr(text, "\nprocs_running ");
    return line != NULL && strtoul(line + 15, NULL, 10) <= 1; /* the one is us */
}

void quiet_wait(struct quiet *quiet, unsigned looks, unsigned look_ms)
{
    unsigned most_ms = quiet->patience_ms < MOMENT_PATIENCE_MS ? quiet->patience_ms : MOMENT_PATIENCE_MS;
    unsigned waited_ms = 0;
    unsigned seen = is_quiet(quiet) ? 1 : 0;

    while (seen < looks && waited_ms + look_ms <= most_ms) {
        (void)usleep(look_ms * 1000);
        waited_ms += look_ms;
        seen = is_quiet(quiet) ? seen + 1 : 0;
    }
    quiet->patience_ms -= waited_ms;
    quiet->moments++;
    quiet->busy += seen == 0;
}

double quiet_busy(const struct quiet *quiet)
{
    return quiet->moments == 0 ? 0 : (double)quiet->busy / (double)quiet->moments;
}
