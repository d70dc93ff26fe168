#include "keeper/environment.h"

#include "base/cleanup.h"
#include "base/fd.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

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

/* Where it lies is what /proc shows, and what every process that we fork has a copy of. */
static void forget(const char *name)
{
    for (char **variable = environ; variable != NULL && *variable != NULL; variable++) {
        if (is_named(*variable, name))
            explicit_bzero(*variable + strlen(name) + 1, strlen(*variable) - strlen(name) - 1);
    }
    (void)unsetenv(name);
}

/* A sealed file: both variables as they are set now, and the key. */
static int make_file(const uint8_t key[ENVIRONMENT_KEY_BYTES], int *ret_fd, struct error *err)
{
    _cleanup_fd_ int fd = memfd_create("presets", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0)
        return error_errno(err, "handing credentials over");
    int r = add(fd, PASSWORD, err);
    if (r == 0)
        r = add(fd, API_KEY, err);
    if (r < 0)
        return r;
    if (fd_write_all(fd, key, ENVIRONMENT_KEY_BYTES) < 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
        return error_errno(err, "handing credentials over");
    *ret_fd = TAKE_FD(fd);
    return 0;
}

int environment_take_presets(int *ret_fd, struct error *err)
{
    uint8_t key[ENVIRONMENT_KEY_BYTES];
    int r = getrandom(key, sizeof key, 0) != (ssize_t)sizeof key ? error_errno(err, "making a key") : 0;

    if (r == 0)
        r = make_file(key, ret_fd, err);
    explicit_bzero(key, sizeof key);
    forget(PASSWORD);
    forget(API_KEY);
    return r;
}

int environment_drop_presets(int *fd, struct error *err)
{
    uint8_t key[ENVIRONMENT_KEY_BYTES];
    int without = -1;
    off_t end = lseek(*fd, 0, SEEK_END);
    bool is_read = pread(*fd, key, sizeof key, end - (off_t)sizeof key) == (ssize_t)sizeof key;
    int r = is_read ? make_file(key, &without, err) : error_errno(err, "reading a key");

    explicit_bzero(key, sizeof key);
    if (r < 0)
        return r;
    close_fd(fd);
    *fd = without;
    return 0;
}
