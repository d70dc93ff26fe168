/*
 * never-reading: clients that ask for much and take nothing: what waits for them must not be kept in memory, and
 * they are not waited for for ever.
 */
#include "attack/attack.h"
#include "attack/tenant.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CALLERS = 16, SMALL = 4096, PIPELINED = 200, LIMIT_MS = 10000, REST_MS = 50 };

/* A connection that takes as little as there is. */
static int dial_narrow(struct caller *caller)
{
    int size = SMALL;
    int r = caller_dial(caller);

    return r < 0 ? r : setsockopt(caller->fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
}

static void ask_all(struct caller *callers, const char *text, unsigned times)
{
    for (unsigned i = 0; i < CALLERS; i++) {
        int r = dial_narrow(&callers[i]);
        for (unsigned n = 0; r == 0 && n < times; n++)
            r = send(callers[i].fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -1 : 0;
    }
}

/* How many connections the daemon has; on this end nothing shows that it gave one up. */
static long count_connections(void)
{
    static const char words[] = "\nhutch_connections ";
    struct reply reply;
    int status = caller_ask(&(struct ask){.path = "/metrics", .key = caller_key()}, &reply);
    const char *at = status == 200 ? strstr((const char *)reply.body.data, words) : NULL;
    long count = at != NULL ? strtol(at + sizeof words - 1, NULL, 10) : -1;

    reply_release(&reply);
    return count;
}

static void calls(struct attempt *attempt)
{
    static struct caller callers[2][CALLERS];
    struct tenant tenant;
    char text[TENANT_PATH_SIZE + 256];
    char path[TENANT_PATH_SIZE];

    if (!tenant_move_in(&tenant, attempt, caller_key(), NULL))
        return;
    (void)tenant_shell(&tenant, "head -c 67108864 /dev/zero > large", NULL);
    (void)snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n",
                   tenant_path(&tenant, "/files/large", path), caller_key());
    long before = count_connections();
    ask_all(callers[0], text, 1);
    ask_all(callers[1], "GET /openapi.yaml HTTP/1.1\r\nHost: localhost\r\n\r\n", PIPELINED);
    long most = count_connections();
    long now = most;
    for (int ms = 0; now > before && ms < LIMIT_MS; ms += REST_MS) {
        (void)usleep(REST_MS * 1000);
        now = count_connections();
    }
    attempt_say(attempt, "16 files of 64 MiB, 16 times 200 pages", before > 0 && most > before && now <= before,
                "%ld connections of %ld are still waited for", now - before, most - before);
    for (unsigned i = 0; i < CALLERS; i++) {
        caller_hang_up(&callers[0][i]);
        caller_hang_up(&callers[1][i]);
    }
    tenant_move_out(&tenant);
}

const struct attack attack_never_reading = {
    .name = "never-reading",
    .tries = "clients that take nothing of what they asked for",
    .group = ATTACK_CALLERS,
    .calls = calls,
};
