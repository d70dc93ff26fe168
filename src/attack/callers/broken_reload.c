/*
 * broken-reload: a configuration that was damaged while the daemon runs: the old one stays, credentials and all.
 */
#include "attack/attack.h"
#include "attack/caller.h"
#include "base/cleanup.h"
#include "base/fd.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static const char *const texts[] = {
    "server: [",
    "server:\n  auth: nobody\n",
    "server:\n  aut: off\n",
    "server:\n  auth: off\n  tls_key: /nowhere\n",
    "sandbox:\n  command_blocklist: [\"(\"]\n",
    "a: &a [*a, *a]\nserver: *b\n",
    "\x01\x02\x03",
    "server:\n  auth: required\nserver:\n  auth: off\n",
};

static int write_config(const char *text)
{
    char path[256];

    (void)snprintf(path, sizeof path, "%s/hutch.yaml", attempt_canary("DOOR_FOLDER"));
    _cleanup_fd_ int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    return fd < 0 ? -errno : fd_write_all(fd, text, strlen(text));
}

/* How often the daemon has said these words. */
static size_t count(const char *words)
{
    static char text[1 << 20];
    char path[256];
    size_t found = 0;

    (void)snprintf(path, sizeof path, "%s/log", attempt_canary("DOOR_FOLDER"));
    if (fd_read_file(AT_FDCWD, path, text, sizeof text) < 0)
        return 0;
    for (const char *at = text; (at = strstr(at, words)) != NULL; at++)
        found++;
    return found;
}

/* Have it read again, and wait for what it says. */
static bool reload(const char *words)
{
    size_t before = count(words);

    if (kill((pid_t)attempt_canary_number("DOOR_PID"), SIGHUP) < 0)
        return false;
    for (int i = 0; i < 2000 && count(words) == before; i++)
        (void)usleep(5000);
    return count(words) > before;
}

static void calls(struct attempt *attempt)
{
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char what[32];
        (void)snprintf(what, sizeof what, "damaged file %zu", i + 1);
        bool is_refused = write_config(texts[i]) == 0 && reload("event=not-reloaded");
        int without = caller_ask(&(struct ask){.path = "/api/v1/tools"}, NULL);
        int with = caller_ask(&(struct ask){.path = "/api/v1/tools", .key = caller_key()}, NULL);
        attempt_say(attempt, what, is_refused && without == 401 && with == 200, "answers are %d without a key, %d with",
                    without, with);
    }
    attempt_say(attempt, "keeping it from reading again", write_config("") == 0 && reload("event=reloaded"),
                "it does not");
}

const struct attack attack_broken_reload = {
    .name = "broken-reload",
    .tries = "a configuration that is damaged while it runs",
    .group = ATTACK_CALLERS,
    .calls = calls,
    .as_operator = true,
};
