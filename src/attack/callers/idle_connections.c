/*
 * idle-connections: more connections than the daemon has room for, none of which says anything: others must still be
 * heard.
 */
#include "attack/attack.h"
#include "attack/caller.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ROOM = 1000, MORE = 400, SPARE = 32 };

/* How many of these the daemon has closed. */
static unsigned count_closed(const int *fds, unsigned count)
{
    unsigned closed = 0;
    char byte;

    for (unsigned i = 0; i < count; i++)
        closed += recv(fds[i], &byte, 1, MSG_DONTWAIT) == 0 ? 1 : 0;
    return closed;
}

static void calls(struct attempt *attempt)
{
    static struct caller caller;
    static int fds[ROOM + MORE];
    struct rlimit limit;
    unsigned count = 0;
    unsigned closed = 0;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
    if (limit.rlim_cur < ROOM + MORE + SPARE) {
        attempt_absent(attempt, "1,400 connections", "a process may not have so many open files");
        return;
    }
    while (count < ROOM + MORE && caller_dial(&caller) == 0)
        fds[count++] = caller.fd;
    attempt_say(attempt, "keeping others out",
                caller_ask(&(struct ask){.path = "/api/v1/tools", .key = caller_key()}, NULL) == 200,
                "nobody is heard");
    for (int i = 0; i < 200 && closed < MORE; i++) {
        closed = count_closed(fds, count);
        (void)usleep(10000);
    }
    attempt_say(attempt, "1,400 connections where 1,000 may be", count == ROOM + MORE && closed >= MORE,
                "of %u only %u were closed", count, closed);
    for (unsigned i = 0; i < count; i++)
        (void)close(fds[i]);
}

const struct attack attack_idle_connections = {
    .name = "idle-connections",
    .tries = "more connections than there is room for",
    .group = ATTACK_CALLERS,
    .calls = calls,
};
