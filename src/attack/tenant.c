#include "attack/tenant.h"

#include "base/cleanup.h"
#include "base/fd.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum { BODY_MAX = 1 << 20, PROGRAM_MAX = 16 << 20, READY_LIMIT_MS = 20000 };

#define READY_FILE "/workspace/ready"

bool tenant_make_key(const char *scope, unsigned seconds, char *ret_key, size_t size, char *ret_id, size_t id_size)
{
    char body[160];
    char expiry[64] = "";
    struct reply reply;

    if (seconds > 0)
        (void)snprintf(expiry, sizeof expiry, ",\"expires_in_seconds\":%u", seconds);
    (void)snprintf(body, sizeof body, "{\"name\":\"attack\",\"scope\":\"%s\"%s}", scope, expiry);
    int status =
        caller_ask(&(struct ask){.method = "POST", .path = "/api/v1/keys", .key = caller_key(), .body = body}, &reply);
    if (status == 201) {
        reply_field(&reply, "secret", ret_key, size);
        reply_field(&reply, "id", ret_id, id_size);
    }
    reply_release(&reply);
    return status == 201 && ret_key[0] != '\0';
}

const char *tenant_path(const struct tenant *tenant, const char *rest, char path[TENANT_PATH_SIZE])
{
    (void)snprintf(path, TENANT_PATH_SIZE, "/api/v1/sandboxes/%s%s", tenant->id, rest);
    return path;
}

bool tenant_move_in(struct tenant *tenant, struct attempt *attempt, const char *key, const char *settings)
{
    struct reply reply;

    *tenant = (struct tenant){.key = key};
    int status = caller_ask(
        &(struct ask){
            .method = "POST", .path = "/api/v1/sandboxes", .key = key, .body = settings != NULL ? settings : "{}"},
        &reply);
    if (status == 201)
        reply_field(&reply, "id", tenant->id, sizeof tenant->id);
    else
        attempt_say(attempt, "making a sandbox", false, "the answer is %d: %.100s", status,
                    reply.body.data != NULL ? (char *)reply.body.data : "");
    reply_release(&reply);
    return tenant->id[0] != '\0';
}

void tenant_move_out(struct tenant *tenant)
{
    char path[TENANT_PATH_SIZE];

    if (tenant->id[0] != '\0')
        (void)caller_ask(&(struct ask){.method = "DELETE", .path = tenant_path(tenant, "", path), .key = caller_key()},
                         NULL);
    tenant->id[0] = '\0';
}

static int post(const struct tenant *tenant, const char *rest, struct buf *body, struct reply *ret_reply)
{
    char path[TENANT_PATH_SIZE];
    int status = 0;

    if (buf_append(body, "", 1) == 0)
        status = caller_ask(&(struct ask){.method = "POST",
                                          .path = tenant_path(tenant, rest, path),
                                          .key = tenant->key,
                                          .body = (const char *)body->data},
                            ret_reply);
    buf_release(body);
    return status;
}

int tenant_tool(const struct tenant *tenant, const char *tool, const char *arguments, struct reply *ret_reply)
{
    struct buf body = buf_init(BODY_MAX);

    ignore_result(buf_printf(&body, "{\"tool\":\"%s\",\"arguments\":", tool));
    ignore_result(buf_append(&body, arguments, strlen(arguments)));
    ignore_result(buf_append(&body, "}", 1));
    return post(tenant, "/tools/execute", &body, ret_reply);
}

/* {"command":"..."} */
static void write_command(struct buf *body, const char *command)
{
    ignore_result(buf_printf(body, "{\"command\":"));
    ignore_result(buf_append_json(body, command, strlen(command)));
    ignore_result(buf_append(body, "}", 2));
}

int tenant_shell(const struct tenant *tenant, const char *command, struct reply *ret_reply)
{
    struct buf arguments = buf_init(BODY_MAX);

    write_command(&arguments, command);
    int status = tenant_tool(tenant, "shell_exec", (const char *)arguments.data, ret_reply);
    buf_release(&arguments);
    return status;
}

bool tenant_start(struct tenant *tenant, struct attempt *attempt, const char *command)
{
    struct buf body = buf_init(BODY_MAX);
    struct reply reply;

    write_command(&body, command);
    int status = post(tenant, "/execs", &body, &reply);
    if (status == 201)
        reply_field(&reply, "id", tenant->exec, sizeof tenant->exec);
    else
        attempt_say(attempt, "starting a command", false, "the answer is %d", status);
    reply_release(&reply);
    return tenant->exec[0] != '\0';
}

static bool bring_program(const struct tenant *tenant)
{
    static char program[PROGRAM_MAX];
    _cleanup_fd_ int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    char path[TENANT_PATH_SIZE];
    ssize_t length = fd < 0 ? -1 : fd_read_all(fd, program, PROGRAM_MAX);

    return length > 0 && caller_ask(&(struct ask){.method = "PUT",
                                                  .path = tenant_path(tenant, "/files/hutch-attack", path),
                                                  .key = tenant->key,
                                                  .headers = "Content-Type: application/octet-stream\r\n",
                                                  .body = program,
                                                  .length = (size_t)length},
                                    NULL) == 200;
}

static bool is_ready(const struct tenant *tenant)
{
    char path[TENANT_PATH_SIZE];

    for (unsigned ms = 0; ms < READY_LIMIT_MS; ms += 10) {
        if (caller_ask(&(struct ask){.path = tenant_path(tenant, "/files/ready", path), .key = tenant->key}, NULL) ==
            200)
            return true;
        (void)usleep(10000);
    }
    return false;
}

bool tenant_start_inside(struct tenant *tenant, struct attempt *attempt, const char *name)
{
    char command[512];

    (void)snprintf(command, sizeof command,
                   "chmod 755 hutch-attack && HUTCH_ATTACK_FILE='%s' exec ./hutch-attack --inside %s",
                   attempt_canary("FILE"), name);
    bool is_there = bring_program(tenant);
    if (is_there)
        is_there = tenant_start(tenant, attempt, command) && is_ready(tenant);
    if (!is_there)
        attempt_say(attempt, "starting the attacker inside", false, "it did not start");
    return is_there;
}

void tenant_say_ready(void)
{
    int fd = open(READY_FILE, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

    if (fd >= 0)
        (void)close(fd);
}
