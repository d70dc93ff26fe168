/*
 * endless-upload: an upload larger than the sandbox's disk, or one whose announced end never comes: no space is
 * taken but the sandbox's, and nothing of it is left.
 */
#include "attack/attack.h"
#include "attack/tenant.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MORE = 24 << 20 };

static void calls(struct attempt *attempt)
{
    static char bytes[MORE];
    struct tenant tenant;
    struct reply reply = {0};
    struct caller caller;
    char path[TENANT_PATH_SIZE];
    char head[TENANT_PATH_SIZE + 256];

    if (!tenant_move_in(&tenant, attempt, caller_key(), "{\"resource_limits\":{\"memory_mb\":64,\"disk_mb\":8}}"))
        return;
    caller_try(attempt, "24 MiB where 8 are allowed",
               &(struct ask){.method = "PUT",
                             .path = tenant_path(&tenant, "/files/large", path),
                             .key = caller_key(),
                             .headers = "Content-Type: text/plain\r\n",
                             .body = bytes,
                             .length = MORE},
               STATUSES(507, 413));
    (void)snprintf(head, sizeof head,
                   "PUT %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Length: "
                   "1000000000000\r\n\r\nabc",
                   tenant_path(&tenant, "/files/half", path), caller_key());
    int r = caller_dial(&caller);
    if (r == 0)
        r = caller_send(&caller, head, strlen(head));
    if (r == 0)
        r = caller_take(&caller, &reply);
    attempt_say(attempt, "an upload that stops", r < 0 || reply.status == 408, "the answer is %d", reply.status);
    reply_release(&reply);
    caller_hang_up(&caller);
    (void)tenant_shell(&tenant, "ls -A | wc -l", &reply);
    attempt_say(attempt, "something of it", reply_says(&reply, "\"0\\n\""), "it is left");
    reply_release(&reply);
    tenant_move_out(&tenant);
}

const struct attack attack_endless_upload = {
    .name = "endless-upload",
    .tries = "uploads without end",
    .group = ATTACK_TRANSFERS,
    .calls = calls,
};
