/*
 * costly-patterns: a regular expression of the caller's own that takes for ever on the right command (CWE-1333)
 * would stop the one loop that serves everybody.
 */
#include "attack/attack.h"
#include "attack/tenant.h"

#include <string.h>

static const char *const patterns[] = {"(a+)+$", "(a|aa)+$", "(.*a){20}", "^(([a-z])+.)+[A-Z]([a-z])+$",
                                       "(?:a?){64}a{64}"};

static void calls(struct attempt *attempt)
{
    char command[4096];
    static const char front[] = {'t', 'r', 'u', 'e', ' '};

    (void)memset(command, 'a', sizeof command);
    memcpy(command, front, sizeof front);
    memcpy(command + sizeof command - 2, "!", 2);
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        struct tenant tenant;
        struct buf settings = buf_init(512);
        int r = buf_printf(&settings, "{\"command_blocklist\":[\"%s\"]}", patterns[i]);
        if (r == 0)
            r = buf_append(&settings, "", 1);
        if (r == 0 && tenant_move_in(&tenant, attempt, caller_key(), (const char *)settings.data)) {
            /* One that can't be told in time may be refused, or run: both are answers. */
            int status = tenant_shell(&tenant, command, NULL);
            attempt_say(attempt, patterns[i], status == 200 || status == 403, "the answer is %d", status);
            tenant_move_out(&tenant);
        }
        buf_release(&settings);
    }
    caller_try(attempt, "a pattern that is too large",
               &(struct ask){.method = "POST",
                             .path = "/api/v1/sandboxes",
                             .key = caller_key(),
                             .body = "{\"command_blocklist\":[\"((((((a{1,999}){1,999}){1,999}){1,999}){1,999}))\"]}"},
               STATUSES(400));
    caller_try(attempt, "a pattern that calls itself",
               &(struct ask){.method = "POST",
                             .path = "/api/v1/sandboxes",
                             .key = caller_key(),
                             .body = "{\"command_blocklist\":[\"(?C1)(*COMMIT\"]}"},
               STATUSES(400));
}

const struct attack attack_costly_patterns = {
    .name = "costly-patterns",
    .tries = "regular expressions that take for ever",
    .group = ATTACK_CALLERS,
    .calls = calls,
};
