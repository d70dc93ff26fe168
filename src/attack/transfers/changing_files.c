/*
 * changing-files: a file that grows without end while it is being read, and one that shrinks: a download has the
 * size that was announced, or is cut off, and ends.
 */
#include "attack/attack.h"
#include "attack/tenant.h"
#include "attack/work.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MS = 400, SIZE = 1 << 20 };

static void inside(struct attempt *attempt)
{
    static char bytes[SIZE];
    int growing = open("growing", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    int shrinking = open("shrinking", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

    (void)attempt;
    (void)memset(bytes, 'x', sizeof bytes);
    ignore_result(write(growing, bytes, sizeof bytes));
    ignore_result(pwrite(shrinking, bytes, sizeof bytes, 0));
    tenant_say_ready();
    for (unsigned i = 0;; i++) {
        if (write(growing, bytes, 4096) < 0)
            ignore_result(ftruncate(growing, SIZE) + lseek(growing, SIZE, SEEK_SET));
        ignore_result(ftruncate(shrinking, i % 2 == 0 ? 1 : 0));
        ignore_result(pwrite(shrinking, bytes, sizeof bytes, 0));
    }
}

/* Only what is in the file: no other byte may stand for what is gone. */
static bool is_clean(const struct reply *reply)
{
    for (size_t i = 0; i + 1 < reply->body.length; i++) {
        if (reply->body.data[i] != 'x')
            return false;
    }
    return true;
}

static void read_again_and_again(struct attempt *attempt, const struct tenant *tenant, const char *name)
{
    uint64_t deadline_ns = work_deadline_ns(MS);
    char rest[64];
    char path[TENANT_PATH_SIZE];
    unsigned bad = 0;
    unsigned whole = 0;

    (void)snprintf(rest, sizeof rest, "/files/%s", name);
    while (work_goes_on(deadline_ns)) {
        struct reply reply;
        int status = caller_ask(&(struct ask){.path = tenant_path(tenant, rest, path), .key = caller_key()}, &reply);
        bad += status != 200 || !is_clean(&reply) ? 1 : 0;
        whole += status == 200 && reply.is_whole ? 1 : 0;
        reply_release(&reply);
    }
    attempt_say(attempt, name, bad == 0, "%u downloads were something else, %u whole", bad, whole);
}

static void calls(struct attempt *attempt)
{
    struct tenant tenant;

    if (!tenant_move_in(&tenant, attempt, caller_key(), NULL))
        return;
    if (tenant_start_inside(&tenant, attempt, "changing-files")) {
        read_again_and_again(attempt, &tenant, "growing");
        read_again_and_again(attempt, &tenant, "shrinking");
    }
    tenant_move_out(&tenant);
}

const struct attack attack_changing_files = {
    .name = "changing-files",
    .tries = "files that grow and shrink while they are read",
    .group = ATTACK_TRANSFERS,
    .calls = calls,
    .inside = inside,
};
