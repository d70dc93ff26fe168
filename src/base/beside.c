#include "base/beside.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int beside_open(const char *name, int *ret_fd, struct error *err)
{
    static const char *const places[] = {"", "/../libexec/hutch"};
    char own[PATH_MAX];
    char path[PATH_MAX + 128];
    ssize_t n = readlink("/proc/self/exe", own, sizeof own - 1);
    int fd = -1;

    own[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(own, '/');
    for (size_t i = 0; slash != NULL && fd < 0 && i < sizeof places / sizeof *places; i++) {
        (void)snprintf(path, sizeof path, "%.*s%s/%s", (int)(slash - own), own, places[i], name);
        fd = open(path, O_PATH | O_CLOEXEC);
    }
    if (fd < 0) {
        (void)snprintf(path, sizeof path, HUTCH_LIBEXEC "/%s", name);
        fd = open(path, O_PATH | O_CLOEXEC);
    }
    if (fd < 0)
        return error_errno(err, "opening %s beside this program or in %s", name, HUTCH_LIBEXEC);
    *ret_fd = fd;
    return 0;
}
