/*
 * files-of-others: another tenant's files, by the id of its sandbox: not read, written, removed or listed, and not
 * to be told from none.
 */
#include "attack/attack.h"
#include "attack/tenant.h"

static void calls(struct attempt *attempt)
{
    static const char *const methods[] = {"GET", "PUT", "DELETE"};
    static const char *const tools[] = {"file_read", "file_write", "file_list", "shell_exec"};
    static const char *const arguments[] = {"{\"path\":\"mine\"}", "{\"path\":\"mine\",\"content\":\"planted\"}",
                                            "{\"path\":\".\"}", "{\"command\":\"cat mine\"}"};
    char one[128] = "";
    char other[128] = "";
    char id[64];
    char path[TENANT_PATH_SIZE];
    struct tenant tenant = {0};
    struct reply reply = {0};

    if (!tenant_make_key("run", 0, one, sizeof one, id, sizeof id) ||
        !tenant_make_key("run", 0, other, sizeof other, id, sizeof id) ||
        !tenant_move_in(&tenant, attempt, one, "{\"files\":{\"mine\":\"the tenant's\"}}")) {
        attempt_say(attempt, "making two tenants", false, "there are none");
        return;
    }
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        caller_try(attempt, methods[i],
                   &(struct ask){.method = methods[i],
                                 .path = tenant_path(&tenant, "/files/mine", path),
                                 .key = other,
                                 .headers = "Content-Type: text/plain\r\n",
                                 .body = i == 1 ? "planted" : NULL},
                   STATUSES(404));
    tenant.key = other;
    for (size_t i = 0; i < sizeof tools / sizeof *tools; i++) {
        int status = tenant_tool(&tenant, tools[i], arguments[i], NULL);
        attempt_say(attempt, tools[i], status == 404, "the answer is %d", status);
    }
    int status = caller_ask(&(struct ask){.path = tenant_path(&tenant, "/files/mine", path), .key = one}, &reply);
    attempt_say(attempt, "changing it", status == 200 && reply_says(&reply, "the tenant's"), "it is not what it was");
    reply_release(&reply);
    tenant_move_out(&tenant);
}

const struct attack attack_files_of_others = {
    .name = "files-of-others",
    .tries = "another tenant's files",
    .group = ATTACK_TRANSFERS,
    .calls = calls,
};
