/*
 * listing-race: folders that become links, and ones without end, while they are being listed: the list stays below
 * where it began, and ends.
 */
#include "attack/attack.h"
#include "attack/tenant.h"
#include "attack/work.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MS = 500, EXCHANGE = 2, DEPTH = 400, FILES = 12000 };

static void make_many(void)
{
    char name[64];

    ignore_result(mkdir("/tmp/many", 0777));
    for (int i = 0; i < FILES; i++) {
        (void)snprintf(name, sizeof name, "/tmp/many/%d", i);
        int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        if (fd >= 0)
            (void)close(fd);
    }
    ignore_result(mkdir("/tmp/deep", 0777));
    ignore_result(chdir("/tmp/deep"));
    for (int i = 0; i < DEPTH; i++) {
        if (mkdir("deeper", 0777) < 0 || chdir("deeper") < 0)
            break;
    }
    ignore_result(chdir("/workspace"));
}

static void inside(struct attempt *attempt)
{
    (void)attempt;
    make_many();
    ignore_result(mkdir("tree", 0777));
    ignore_result(mkdir("tree/folder", 0777));
    ignore_result(symlink("/usr/lib", "other"));
    tenant_say_ready();
    for (;;)
        ignore_result(syscall(SYS_renameat2, AT_FDCWD, "tree/folder", AT_FDCWD, "other", EXCHANGE));
}

static void calls(struct attempt *attempt)
{
    struct tenant tenant;
    struct reply reply = {0};
    unsigned bad = 0;
    unsigned lists = 0;

    if (!tenant_move_in(&tenant, attempt, caller_key(), NULL))
        return;
    if (tenant_start_inside(&tenant, attempt, "listing-race")) {
        uint64_t deadline_ns = work_deadline_ns(MS);
        for (; work_goes_on(deadline_ns); lists++) {
            int status = tenant_tool(&tenant, "file_list", "{\"path\":\"tree\",\"recursive\":true}", &reply);
            bad += status != 200 || reply_says(&reply, "folder/") ? 1 : 0;
            reply_release(&reply);
        }
        attempt_say(attempt, "a list", bad == 0, "%u of %u went elsewhere", bad, lists);
        int status = tenant_tool(&tenant, "file_list", "{\"path\":\"/tmp/many\"}", &reply);
        attempt_say(attempt, "12,000 files", status == 200 && reply.body_bytes < 4 << 20, "%llu bytes of answer, %d",
                    (unsigned long long)reply.body_bytes, status);
        reply_release(&reply);
        status = tenant_tool(&tenant, "file_list", "{\"path\":\"/tmp/deep\",\"recursive\":true}", &reply);
        attempt_say(attempt, "folders 400 deep", status == 200 || (status >= 400 && status < 500), "the answer is %d",
                    status);
        reply_release(&reply);
    }
    tenant_move_out(&tenant);
}

const struct attack attack_listing_race = {
    .name = "listing-race",
    .tries = "folders that become links while they are listed",
    .group = ATTACK_TRANSFERS,
    .calls = calls,
    .inside = inside,
};
