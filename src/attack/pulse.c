#include "attack/pulse.h"

#include "attack/caller.h"

#include <string.h>
#include <unistd.h>

static const char request[] = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";

static int ask(struct caller *caller, struct reply *ret_reply)
{
    int r = caller->fd >= 0 ? 0 : caller_dial(caller);

    if (r == 0)
        r = caller_send(caller, request, sizeof request - 1);
    return r < 0 ? r : caller_take(caller, ret_reply);
}

/* One that was idle too long was closed rightly: the second time it is a new one. */
static bool is_well(struct caller *caller)
{
    for (int i = 0; i < 2; i++) {
        struct reply reply = {0};
        bool is_good = ask(caller, &reply) == 0 && reply.status == 200 && reply_says(&reply, "ok");
        reply_release(&reply);
        if (is_good)
            return true;
        caller_hang_up(caller);
    }
    return false;
}

int pulse_beat(void)
{
    static struct caller caller = {.fd = -1};
    char line[64];

    while (read(STDIN_FILENO, line, sizeof line) > 0) {
        const char *words = is_well(&caller) ? "well\n" : "the daemon does not answer /healthz\n";
        ignore_result(write(STDOUT_FILENO, words, strlen(words)));
    }
    caller_hang_up(&caller);
    return 0;
}
