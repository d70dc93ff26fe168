/*
 * forged-records: what a caller names files, commands and agents must not become a record of the audit log, or a
 * field of one.
 */
#include "attack/attack.h"
#include "attack/tenant.h"

#include <string.h>

#define RECORD "\",\"verdict\":\"allowed\"},{\"number\":1,\"action\":\"forged\",\"x\":\""

static size_t count(const char *text, const char *words)
{
    size_t found = 0;

    for (; (text = strstr(text, words)) != NULL; text += strlen(words))
        found++;
    return found;
}

static void calls(struct attempt *attempt)
{
    static const char *const agents[] = {"X-Agent: a" RECORD "\r\n", "X-Agent: a\\\r\n", "X-Agent: a\\u0022,\r\n"};
    struct tenant tenant;
    struct reply reply = {0};
    char path[TENANT_PATH_SIZE];

    if (!tenant_move_in(&tenant, attempt, caller_key(), NULL))
        return;
    (void)tenant_shell(&tenant, "true '" RECORD "'", NULL);
    (void)tenant_shell(&tenant, "true '\n{\"action\":\"forged\"}\n'", NULL);
    (void)tenant_tool(&tenant, "file_read", "{\"path\":\"a\\\",\\\"action\\\":\\\"forged\"}", NULL);
    (void)tenant_tool(&tenant, "file_read", "{\"path\":\"a\\n},{\\\"action\\\":\\\"forged\\\"\"}", NULL);
    for (size_t i = 0; i < sizeof agents / sizeof *agents; i++)
        (void)caller_ask(
            &(struct ask){.path = tenant_path(&tenant, "", path), .key = caller_key(), .headers = agents[i]}, NULL);
    (void)caller_ask(
        &(struct ask){.path = tenant_path(&tenant, "/files/%22,%22action%22:%22forged", path), .key = caller_key()},
        NULL);
    int status = caller_ask(&(struct ask){.path = tenant_path(&tenant, "/logs", path), .key = caller_key()}, &reply);
    const char *text = reply.body.data != NULL ? (const char *)reply.body.data : "";
    attempt_say(attempt, "records", status == 200 && count(text, "\"action\":\"forged\"") == 0,
                "one of them is forged");
    attempt_say(attempt, "what was tried is there", count(text, "forged") >= 4, "it is missing");
    attempt_say(attempt, "fields", count(text, "\"number\":") == count(text, "\"hash\":"), "some are not the daemon's");
    reply_release(&reply);
    tenant_move_out(&tenant);
}

const struct attack attack_forged_records = {
    .name = "forged-records",
    .tries = "records for the audit log",
    .group = ATTACK_CALLERS,
    .calls = calls,
};
