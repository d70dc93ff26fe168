/*
 * open-to-all: a daemon that asks for no credentials and listens beyond loopback gives every machine around a shell:
 * it must not start.
 */
#include "attack/attack.h"
#include "attack/caller.h"
#include "attack/process.h"
#include "base/fd.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIMIT_MS = 20000 };

static int status_of(pid_t pid)
{
    int status = 0;

    for (unsigned ms = 0; pid > 0 && ms < LIMIT_MS; ms += 5) {
        if (waitpid(pid, &status, WNOHANG) == pid)
            return process_status(status);
        (void)usleep(5000);
    }
    (void)kill(pid, SIGTERM);
    (void)waitpid(pid, &status, 0);
    return -1;
}

/* Start it like this: its status, -1 when it runs. */
static int start(const char *listen, bool only_checks, char *ret_words, size_t size)
{
    char state[256];
    char out[256];
    const char *argv[] = {
        attempt_canary("DOOR_DAEMON"),         "--config", "/dev/null", "--state", state, "--listen", listen,
        only_checks ? "--check-config" : NULL, NULL};
    const char *envp[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HUTCH_SERVER_AUTH=off", NULL};

    (void)snprintf(state, sizeof state, "%s/open", attempt_canary("DOOR_FOLDER"));
    (void)snprintf(out, sizeof out, "%s/open.log", attempt_canary("DOOR_FOLDER"));
    int fd = open(out, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    struct process process = {.argv = argv, .envp = envp, .fds = {-1, fd, fd}};
    int status = fd < 0 ? -1 : status_of(process_start(&process));
    if (fd_read_file(AT_FDCWD, out, ret_words, size) < 0)
        ret_words[0] = '\0';
    (void)close(fd);
    return status;
}

static void calls(struct attempt *attempt)
{
    static const char *const addresses[] = {"0.0.0.0:0", "[::]:0", "127.0.0.1:0,0.0.0.0:0", "10.255.255.254:0"};
    char words[4096];

    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
        int status = start(addresses[i], true, words, sizeof words);
        attempt_say(attempt, addresses[i], status > 0 && strstr(words, "server.auth") != NULL, "status %d: %.100s",
                    status, words);
    }
    int status = start("0.0.0.0:0", false, words, sizeof words);
    attempt_say(attempt, "starting it", status > 0 && strstr(words, "server.auth") != NULL, "status %d: %.100s", status,
                words);
    status = start("127.0.0.1:0", true, words, sizeof words);
    attempt_say(attempt, "refusing loopback too", status == 0, "status %d: %.100s", status, words);
}

const struct attack attack_open_to_all = {
    .name = "open-to-all",
    .tries = "a daemon without credentials beyond loopback",
    .group = ATTACK_CALLERS,
    .calls = calls,
    .as_operator = true,
};
