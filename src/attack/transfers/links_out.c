/*
 * links-out: links that a sandbox plants where a caller will read or write: to the host's files, to init's, to the
 * worker's own descriptors (CVE-2018-15664, CVE-2024-23651 and their kin).
 */
#include "attack/attack.h"
#include "attack/tenant.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const targets[] = {
    "/proc/1/environ",
    "/proc/1/root/etc/passwd",
    "/proc/1/fd/3",
    "/proc/self/environ",
    "/proc/self/mem",
    "/proc/self/fd/0",
    "/proc/self/fd/1",
    "/proc/self/fd",
    "/dev/zero",
    "/dev/tty",
    "/proc/self/maps",
    "/etc/shadow",
    "link",
    "../../../../..",
    "/proc/self/root/proc/1/mem",
    "/proc/1/task/1/stat",
};
enum { TARGETS = sizeof targets / sizeof *targets };

static void inside(struct attempt *attempt)
{
    char name[64];

    for (size_t i = 0; i < TARGETS; i++) {
        (void)snprintf(name, sizeof name, "link%zu", i);
        ignore_result(symlink(targets[i], name));
    }
    ignore_result(symlink("link", "link"));
    ignore_result(symlink(attempt_canary("FILE"), "host"));
    ignore_result(symlink("/", "root"));
    ignore_result(link("/proc/self/environ", "hard"));
    ignore_result(link("/etc/passwd", "hard"));
    tenant_say_ready();
    attempt_say(attempt, "links", true, "%s", "");
    (void)pause();
}

static void try_link(struct attempt *attempt, const struct tenant *tenant, const char *name, const char *target)
{
    static const char *const methods[] = {"GET", "PUT"};
    char rest[128];
    char path[TENANT_PATH_SIZE];
    char label[96];

    for (size_t i = 0; i < 2; i++) {
        struct reply reply;
        (void)snprintf(rest, sizeof rest, "/files/%s%s", name, i == 0 ? "" : "/planted");
        (void)snprintf(label, sizeof label, "%s through a link to %.60s", methods[i], target);
        int status = caller_ask(&(struct ask){.method = methods[i],
                                              .path = tenant_path(tenant, rest, path),
                                              .key = tenant->key,
                                              .headers = "Content-Type: text/plain\r\n",
                                              .body = i == 1 ? "planted" : NULL},
                                &reply);
        attempt_say(attempt, label, status >= 400 && status < 500, "the answer is %d: %.60s", status,
                    reply.body.data != NULL ? (char *)reply.body.data : "");
        reply_release(&reply);
    }
}

static void calls(struct attempt *attempt)
{
    static const char *const users[] = {"{\"user\":\"nobody\"}", "{\"user\":\"root\"}"};
    char name[64];

    for (size_t user = 0; user < 2; user++) {
        struct tenant tenant;
        if (!tenant_move_in(&tenant, attempt, caller_key(), users[user]))
            return;
        if (tenant_start_inside(&tenant, attempt, "links-out")) {
            for (size_t i = 0; i < TARGETS; i++) {
                (void)snprintf(name, sizeof name, "link%zu", i);
                try_link(attempt, &tenant, name, targets[i]);
            }
            try_link(attempt, &tenant, "host", "a file of the host's");
            try_link(attempt, &tenant, "root/usr/bin", "the root");
        }
        tenant_move_out(&tenant);
    }
}

const struct attack attack_links_out = {
    .name = "links-out",
    .tries = "links where a caller reads and writes",
    .group = ATTACK_TRANSFERS,
    .calls = calls,
    .inside = inside,
};
