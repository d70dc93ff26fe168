#include "cli/words.h"

#include <stdlib.h>
#include <string.h>

enum { GIVEN_MAX = 10 };

static int add_string(struct buf *strings, const char *text)
{
    return buf_append(strings, text, strlen(text) + 1);
}

static bool is_set_by(const char *entry, const char *name_value)
{
    size_t length = strcspn(entry, "=");

    return strncmp(entry, name_value, length) == 0 && (name_value[length] == '=' || name_value[length] == '\0');
}

/* A variable the caller names later replaces this one; a NAME that the caller does not have is not there at all. */
static bool is_replaced(const struct run_options *options, const char *entry, size_t from)
{
    for (size_t i = from; i < options->env_count; i++) {
        if (is_set_by(entry, options->env[i]))
            return true;
    }
    return strchr(entry, '=') == NULL && getenv(entry) == NULL;
}

static int add_variable(struct buf *strings, const char *entry)
{
    const char *value = strchr(entry, '=') == NULL ? getenv(entry) : NULL;

    if (value == NULL)
        return add_string(strings, entry);
    int r = buf_append(strings, entry, strlen(entry));
    if (r == 0)
        r = buf_append(strings, "=", 1);
    return r < 0 ? r : add_string(strings, value);
}

/* What every command has. At most GIVEN_MAX. */
static size_t gather_given(const struct run_options *options, const char *given[])
{
    static const char *const proxied[] = {"HTTP_PROXY=http://127.0.0.1:15004",  "http_proxy=http://127.0.0.1:15004",
                                          "HTTPS_PROXY=http://127.0.0.1:15004", "https_proxy=http://127.0.0.1:15004",
                                          "NO_PROXY=localhost,127.0.0.1,::1",   "no_proxy=localhost,127.0.0.1,::1"};
    size_t count = 0;

    given[count++] = options->uid == 0 ? "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
                                       : "PATH=/usr/local/bin:/usr/bin:/bin";
    given[count++] = "HOME=/home/sandbox";
    given[count++] = "LANG=C.UTF-8";
    /* What a terminal can do is told by the one the caller sits at. */
    if (options->tty)
        given[count++] = "TERM";
    for (size_t i = 0; (options->net_full || options->net_count > 0) && i < sizeof proxied / sizeof *proxied; i++)
        given[count++] = proxied[i];
    return count;
}

int words_gather(const struct run_options *options, struct buf *strings, uint32_t *ret_argc, uint32_t *ret_envc)
{
    const char *given[GIVEN_MAX];
    size_t given_count = gather_given(options, given);
    uint32_t argc = 0;
    uint32_t envc = 0;
    int r = 0;

    for (; r == 0 && options->command[argc] != NULL; argc++)
        r = add_string(strings, options->command[argc]);
    for (size_t i = 0; r == 0 && i < given_count + options->env_count; i++) {
        const char *entry = i < given_count ? given[i] : options->env[i - given_count];
        if (is_replaced(options, entry, i < given_count ? 0 : i - given_count + 1))
            continue;
        r = add_variable(strings, entry);
        envc++;
    }
    *ret_argc = argc;
    *ret_envc = envc;
    return r;
}
