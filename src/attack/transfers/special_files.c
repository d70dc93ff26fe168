/*
 * special-files: a FIFO, a socket or a device where a file is expected: whoever opens it to read or write may wait
 * for ever, or get what has no end.
 */
#include "attack/attack.h"
#include "attack/tenant.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static const char *const names[] = {"fifo",        "open-fifo", "socket",   "/dev/zero",
                                    "/dev/random", "/dev/full", "/dev/tty", "folder"};
enum { NAMES = sizeof names / sizeof *names };

static void inside(struct attempt *attempt)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "socket"};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ignore_result(mkfifo("fifo", 0666));
    ignore_result(mkfifo("open-fifo", 0666));
    ignore_result(open("open-fifo", O_RDWR | O_CLOEXEC));
    ignore_result(bind(fd, (struct sockaddr *)&address, sizeof address));
    ignore_result(listen(fd, 1));
    ignore_result(mkdir("folder", 0777));
    tenant_say_ready();
    attempt_say(attempt, "special files", true, "%s", "");
    (void)pause();
}

static void calls(struct attempt *attempt)
{
    static const char *const methods[] = {"GET", "PUT"};
    static const char *const tools[] = {"file_read", "file_write"};
    struct tenant tenant;
    char path[TENANT_PATH_SIZE];
    char label[96];
    char text[160];

    if (!tenant_move_in(&tenant, attempt, caller_key(), NULL))
        return;
    bool is_there = tenant_start_inside(&tenant, attempt, "special-files");
    for (size_t i = 0; is_there && i < (size_t)2 * NAMES; i++) {
        const char *name = names[i / 2];
        (void)snprintf(text, sizeof text, "/files/%s", name);
        (void)snprintf(label, sizeof label, "%s %s", methods[i % 2], name);
        caller_try(attempt, label,
                   &(struct ask){.method = methods[i % 2],
                                 .path = tenant_path(&tenant, text, path),
                                 .key = caller_key(),
                                 .headers = "Content-Type: text/plain\r\n",
                                 .body = i % 2 == 1 ? "planted" : NULL},
                   STATUSES(400, 403));
        (void)snprintf(text, sizeof text, "{\"path\":\"%s\"%s}", name, i % 2 == 1 ? ",\"content\":\"x\"" : "");
        int status = tenant_tool(&tenant, tools[i % 2], text, NULL);
        (void)snprintf(label, sizeof label, "%s %s", tools[i % 2], name);
        attempt_say(attempt, label, status == 400 || status == 403, "the answer is %d", status);
    }
    tenant_move_out(&tenant);
}

const struct attack attack_special_files = {
    .name = "special-files",
    .tries = "a FIFO, socket or device where a file is expected",
    .group = ATTACK_TRANSFERS,
    .calls = calls,
    .inside = inside,
};
