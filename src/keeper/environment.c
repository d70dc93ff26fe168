#include "keeper/environment.h"

#include "base/cleanup.h"
#include "base/fd.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#define PASSWORD "HUTCH_ADMIN_PASSWORD"
#define API_KEY "HUTCH_API_KEY"

enum { PRESET_MAX = 1024 };

static bool is_named(const char *variable, const char *name)
{
    size_t length = strlen(name);

    return strncmp(variable, name, length) == 0 && variable[length] == '=';
}

int environment_init(struct environment *environment, char *const *from, char *listen, struct error *err)
{
    environment->count = 0;
    for (; from != NULL && *from != NULL; from++) {
        if (strncmp(*from, "HUTCH_", strlen("HUTCH_")) != 0 || is_named(*from, PASSWORD) || is_named(*from, API_KEY) ||
            (listen != NULL && is_named(*from, "HUTCH_SERVER_LISTEN")))
            continue;
        if (environment->count == ENVIRONMENT_MAX)
            return error_set(err, ERROR_LIMIT, 0, "more than %d variables HUTCH_* are set", ENVIRONMENT_MAX);
        environment->variables[environment->count++] = *from;
    }
    if (listen != NULL)
        environment->variables[environment->count++] = listen;
#ifdef HUTCH_SANITIZED
    /* To look for leaks it would have to trace itself, which its filter refuses. */
    static char no_leaks[] = "ASAN_OPTIONS=detect_leaks=0";
    static char no_races[] = "TSAN_OPTIONS=halt_on_error=1";
    environment->variables[environment->count++] = no_leaks;
    environment->variables[environment->count++] = no_races;
#endif
    environment->variables[environment->count] = NULL;
    return 0;
}

static int add(int fd, const char *name, struct error *err)
{
    const char *value = getenv(name);

    if (value == NULL)
        value = "";
    if (strlen(value) > PRESET_MAX)
        return error_set(err, ERROR_INVALID, 0, "%s is longer than %d bytes", name, PRESET_MAX);
    int r = fd_write_all(fd, value, strlen(value) + 1);
    return r < 0 ? error_set(err, ERROR_SYSTEM, -r, "handing %s over", name) : 0;
}

int environment_open_presets(int *ret_fd, struct error *err)
{
    uint8_t key[ENVIRONMENT_KEY_BYTES];
    _cleanup_fd_ int fd = memfd_create("presets", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return error_errno(err, "handing credentials over");
    int r = add(fd, PASSWORD, err);
    if (r == 0)
        r = add(fd, API_KEY, err);
    if (r < 0)
        return r;
    if (getrandom(key, sizeof key, 0) != (ssize_t)sizeof key || fd_write_all(fd, key, sizeof key) < 0)
        return error_errno(err, "making a key");
    explicit_bzero(key, sizeof key);
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
        return error_errno(err, "handing credentials over");
    *ret_fd = TAKE_FD(fd);
    return 0;
}
