/*
 * state-files: the files of the daemon's: whoever can read them has the keys' hashes and everybody's output, whoever
 * reaches the socket is taken for root.
 */
#include "attack/attack.h"
#include "attack/caller.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void calls(struct attempt *attempt)
{
    static const char *const names[] = {
        "state", "state/gateway", "state/gateway/hutch.db", "state/gateway/hutch.db-wal", "state/api.sock", "log"};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char path[256];
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", attempt_canary("DOOR_FOLDER"), names[i]);
        TRY(attempt, names[i], open(path, O_RDONLY | O_CLOEXEC), EACCES);
    }
    (void)snprintf(path, sizeof path, "%s/state/api.sock", attempt_canary("DOOR_FOLDER"));
    if (strlen(path) < sizeof address.sun_path)
        memcpy(address.sun_path, path, strlen(path) + 1);
    TRY(attempt, "the socket of the command line", connect(fd, (struct sockaddr *)&address, sizeof address), EACCES);
    (void)snprintf(path, sizeof path, "/proc/%ld/environ", attempt_canary_number("DOOR_PID"));
    TRY(attempt, "the daemon's environment", open(path, O_RDONLY | O_CLOEXEC), EACCES);
    (void)snprintf(path, sizeof path, "/proc/%ld/mem", attempt_canary_number("DOOR_PID"));
    TRY(attempt, "the daemon's memory", open(path, O_RDONLY | O_CLOEXEC), EACCES);
    (void)close(fd);
}

const struct attack attack_state_files = {
    .name = "state-files",
    .tries = "the daemon's files and socket, as nobody",
    .group = ATTACK_CALLERS,
    .calls = calls,
};
