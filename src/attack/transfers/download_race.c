/*
 * download-race: a file that becomes a link, and a file again, while it is being downloaded (CVE-2019-14271,
 * CVE-2022-0811 and their kin): what comes is the file, or nothing.
 */
#include "attack/attack.h"
#include "attack/tenant.h"
#include "attack/work.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MS = 500, EXCHANGE = 2 };

static void inside(struct attempt *attempt)
{
    int fd = open("file", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

    (void)attempt;
    ignore_result(write(fd, "mine", 4));
    ignore_result(symlink("/proc/self/environ", "other"));
    tenant_say_ready();
    for (;;)
        ignore_result(syscall(SYS_renameat2, AT_FDCWD, "file", AT_FDCWD, "other", EXCHANGE));
}

/* The file itself, or a refusal. */
static bool is_good(const struct ask *ask, bool *ret_was_file)
{
    struct reply reply;
    int status = caller_ask(ask, &reply);
    bool is_file = status == 200 && reply.body_bytes == 4 && reply_says(&reply, "mine");

    reply_release(&reply);
    *ret_was_file = is_file;
    return is_file || status == 403 || status == 404 || status == 400;
}

static void calls(struct attempt *attempt)
{
    struct tenant tenant;
    char path[TENANT_PATH_SIZE];
    unsigned counts[2] = {0};
    unsigned bad = 0;

    if (!tenant_move_in(&tenant, attempt, caller_key(), NULL))
        return;
    if (tenant_start_inside(&tenant, attempt, "download-race")) {
        struct ask ask = {.path = tenant_path(&tenant, "/files/file", path), .key = caller_key()};
        uint64_t deadline_ns = work_deadline_ns(MS);
        while (work_goes_on(deadline_ns)) {
            bool was_file = false;
            bad += is_good(&ask, &was_file) ? 0 : 1;
            counts[was_file ? 1 : 0]++;
        }
        attempt_say(attempt, "a download", bad == 0, "%u of %u times it was something else", bad,
                    counts[0] + counts[1]);
        attempt_say(attempt, "winning the race", counts[0] > 0 && counts[1] > 0, "it was not one: %u links, %u files",
                    counts[0], counts[1]);
    }
    tenant_move_out(&tenant);
}

const struct attack attack_download_race = {
    .name = "download-race",
    .tries = "a file that becomes a link while it is downloaded",
    .group = ATTACK_TRANSFERS,
    .calls = calls,
    .inside = inside,
};
