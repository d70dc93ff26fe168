#include "quiet.h"

#include "base/cleanup.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>

enum { LOOKS = 10, LOOK_MS = 2, MOMENT_PATIENCE_MS = 2000, PATIENCE_MS = 60000 };

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

void quiet_wait(struct quiet *quiet)
{
    unsigned waited_ms = 0;
    int looks = 0;

    /* Quiet is what is so for a while. */
    while (looks < LOOKS && waited_ms < quiet->patience_ms && waited_ms < MOMENT_PATIENCE_MS) {
        looks = is_quiet(quiet) ? looks + 1 : 0;
        (void)usleep(LOOK_MS * 1000);
        waited_ms += LOOK_MS;
    }
    quiet->patience_ms -= waited_ms;
    quiet->moments++;
    quiet->busy += looks < LOOKS && !is_quiet(quiet);
}

double quiet_busy(const struct quiet *quiet)
{
    return quiet->moments == 0 ? 0 : (double)quiet->busy / (double)quiet->moments;
}
