#include "cli/host.h"

#include "base/sys.h"

#include <limits.h>
#include <stdlib.h>

int host_open(const char *path, const char *option, int flags, int *ret_fd, struct error *err)
{
    int fd = sys_openat2(AT_FDCWD, path, (uint64_t)(unsigned)(flags | O_CLOEXEC),
                         RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);

    if (fd < 0 && errno == ELOOP) {
        char real[PATH_MAX];
        return error_set(err, ERROR_INVALID, ELOOP, "%s: %.200s contains a symlink; if that is meant, give %.200s",
                         option, path, realpath(path, real) != NULL ? real : "the real path");
    }
    if (fd < 0)
        return error_set(err, errno == ENOENT ? ERROR_NOT_FOUND : ERROR_INVALID, errno, "%s: opening %s%.200s", option,
                         (flags & O_DIRECTORY) != 0 ? "the folder " : "", path);
    *ret_fd = fd;
    return 0;
}

static uint32_t id_from_environment(const char *name, uint32_t otherwise)
{
    const char *text = getenv(name);
    char *end;

    if (text == NULL || *text == '\0')
        return otherwise;
    unsigned long number = strtoul(text, &end, 10);
    return *end == '\0' && number < UINT32_MAX ? (uint32_t)number : otherwise;
}

uint32_t host_owner_uid(void)
{
    return id_from_environment("SUDO_UID", getuid());
}

uint32_t host_owner_gid(void)
{
    return id_from_environment("SUDO_GID", getgid());
}
