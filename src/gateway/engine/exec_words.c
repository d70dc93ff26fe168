#include "gateway/engine/exec_words.h"

#include "wire/wire.h"

#include <string.h>

enum { VECTORS = 3, VARIABLES_MAX = 2048 };

static bool is_same_name(const char *a, const char *b)
{
    size_t length = strcspn(a, "=");

    return strncmp(a, b, length) == 0 && b[length] == '=';
}

static bool is_in(const char *entry, const char *const *vector)
{
    for (; vector != NULL && *vector != NULL; vector++) {
        if (is_same_name(entry, *vector))
            return true;
    }
    return false;
}

static int add(struct buf *strings, const char *text)
{
    return buf_append(strings, text, strlen(text) + 1);
}

static int too_much(struct error *err)
{
    return error_set(err, ERROR_LIMIT, E2BIG, "the arguments and the environment may be %d KiB together",
                     WIRE_STRINGS_MAX / 1024);
}

static int add_environment(const char *const *const vectors[VECTORS], struct buf *strings, uint32_t *ret_envc,
                           struct error *err)
{
    uint32_t count = 0;

    for (size_t i = 0; i < VECTORS; i++) {
        for (const char *const *entry = vectors[i]; entry != NULL && *entry != NULL; entry++) {
            size_t name = strcspn(*entry, "=");
            bool is_replaced = is_in(*entry, entry + 1);
            if (name == 0 || (*entry)[name] == '\0')
                return error_set(err, ERROR_INVALID, 0, "'%.100s' is no NAME=value", *entry);
            for (size_t later = i + 1; later < VECTORS && !is_replaced; later++)
                is_replaced = is_in(*entry, vectors[later]);
            if (is_replaced)
                continue;
            if (++count > VARIABLES_MAX || add(strings, *entry) < 0)
                return too_much(err);
        }
    }
    *ret_envc = count;
    return 0;
}

int exec_words(const struct exec_settings *settings, const char *const *sandbox_env, struct buf *strings,
               uint32_t *ret_argc, uint32_t *ret_envc, struct error *err)
{
    const char *const shell[] = {"/bin/sh", "-c", settings->shell, NULL};
    const char *const *argv = settings->argv != NULL ? settings->argv : shell;
    const char *const defaults[] = {
        settings->uid == 0 ? "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
                           : "PATH=/usr/local/bin:/usr/bin:/bin",
        "HOME=/home/sandbox", "LANG=C.UTF-8", settings->has_terminal ? "TERM=xterm-256color" : NULL, NULL};
    const char *const *const vectors[VECTORS] = {defaults, sandbox_env, settings->env};
    uint32_t argc = 0;

    if (argv[0] == NULL || argv[0][0] == '\0' || (settings->argv == NULL && settings->shell == NULL))
        return error_set(err, ERROR_INVALID, 0, "there is no command");
    for (; argv[argc] != NULL; argc++) {
        if (add(strings, argv[argc]) < 0)
            return too_much(err);
    }
    *ret_argc = argc;
    return add_environment(vectors, strings, ret_envc, err);
}
