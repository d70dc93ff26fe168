/*
 * odd-paths: paths that lead up, to the host's files, to what init holds, or that are too long: refused on the way
 * in, out and away, by route and by tool.
 */
#include "attack/attack.h"
#include "attack/tenant.h"

#include <stdio.h>
#include <string.h>

enum { LONG = 4096, LONG_NAME = 256, HOST_NAMES = 2 };

static const char *const methods[] = {"GET", "PUT", "DELETE"};

static const char *const paths[] = {
    "..",
    "../x",
    "a/../../x",
    "%2e%2e/x",
    "%2e%2e%2f%2e%2e%2fetc/shadow",
    "a%2fb",
    "a%00b",
    "%00",
    ".",
    "/",
    "/.",
    "/etc/shadow",
    "/proc/1/environ",
    "/proc/1/root/etc/passwd",
    "/proc/1/cwd/x",
    "/proc/1/fd/0",
    "/proc/self/mem",
    "/proc/self/environ",
    "/proc/self/fd/0",
    "/proc/self/fd/1",
    "/proc/thread-self/root/proc/1/mem",
    "/proc/sys/kernel/core_pattern/x",
    "/proc/sysrq-trigger",
    "/proc/kcore",
    "/dev/zero",
    "/dev/tty",
    "/dev/mem",
    "/sys/kernel/uevent_helper",
    "/var/lib/hutch",
};

static void try_path(struct attempt *attempt, const struct tenant *tenant, const char *what, const char *path)
{
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        char rest[LONG + 512];
        char whole[TENANT_PATH_SIZE];
        char label[96];
        (void)snprintf(rest, sizeof rest, "/files/%s", path);
        (void)snprintf(label, sizeof label, "%s %.60s", methods[i], what);
        caller_try(attempt, label,
                   &(struct ask){.method = methods[i],
                                 .path = tenant_path(tenant, rest, whole),
                                 .key = tenant->key,
                                 .headers = "Content-Type: text/plain\r\n",
                                 .body = i == 1 ? "planted" : NULL},
                   STATUSES(400, 403, 404, 409));
    }
}

static void try_tools(struct attempt *attempt, const struct tenant *tenant)
{
    static const char *const tools[] = {"file_read", "file_write", "file_list"};
    char up[512];
    const char *const names[] = {
        up, attempt_canary("FILE"), "/proc/1/environ", "/proc/self/fd/1", "a\\u0000b", "\\ud800", ""};

    (void)snprintf(up, sizeof up, "../../../../../../../..%s", attempt_canary("FILE"));
    for (size_t i = 0; i < sizeof tools / sizeof *tools; i++) {
        for (size_t j = 0; j < sizeof names / sizeof *names; j++) {
            char arguments[768];
            struct reply reply;
            char label[96];
            (void)snprintf(arguments, sizeof arguments, "{\"path\":\"%s\"%s}", names[j],
                           i == 1 ? ",\"content\":\"planted\"" : "");
            int status = tenant_tool(tenant, tools[i], arguments, &reply);
            (void)snprintf(label, sizeof label, "%s %.60s", tools[i], names[j]);
            /* A file of that name may be made inside, at most. */
            attempt_say(attempt, label,
                        status >= (j < HOST_NAMES ? 200 : 400) && status < 500 && !reply_says(&reply, "the secret"),
                        "the answer is %d", status);
            reply_release(&reply);
        }
    }
}

static void calls(struct attempt *attempt)
{
    struct tenant tenant;
    char name[LONG + 1];

    if (!tenant_move_in(&tenant, attempt, caller_key(), NULL))
        return;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        try_path(attempt, &tenant, paths[i], paths[i]);
    (void)memset(name, 'a', sizeof name);
    name[LONG] = '\0';
    try_path(attempt, &tenant, "a name of 4,096 bytes", name);
    name[LONG_NAME] = '\0';
    try_path(attempt, &tenant, "a name of 256 bytes", name);
    try_tools(attempt, &tenant);
    tenant_move_out(&tenant);
}

const struct attack attack_odd_paths = {
    .name = "odd-paths",
    .tries = "paths that lead up and out",
    .group = ATTACK_TRANSFERS,
    .calls = calls,
};
