#include "client.h"

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/sys.h"
#include "keeper/zygote.h"
#include "wire/link.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum {
    CHANNEL = 1,
    REPLY_LIMIT_MS = 20000,
    NOBODY = 65534,
    /* What `hutch run` asks for when nothing is said. */
    MEMORY_BYTES = 512 << 20,
    DISK_BYTES = 256 << 20,
    DISK_INODES = DISK_BYTES / 4096,
    PROCESSES = 256,
    OPEN_FILES = 1024,
};

static uint8_t frame[WIRE_FRAME_MAX];
volatile sig_atomic_t client_interrupted;

static void interrupt(int number)
{
    (void)number;
    client_interrupted = 1;
}

void client_catch_signals(void)
{
    struct sigaction action = {.sa_handler = interrupt};

    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
}

static pid_t pid_of(int pidfd)
{
    char path[64];
    char text[512];

    (void)snprintf(path, sizeof path, "/proc/self/fdinfo/%d", pidfd);
    if (fd_read_file(AT_FDCWD, path, text, sizeof text) < 0)
        return -1;
    const char *pid = strstr(text, "\nPid:");
    return pid == NULL ? -1 : (pid_t)strtol(pid + 5, NULL, 10);
}

int client_start(struct client *client, const char *init, const char *state, struct error *err)
{
    struct keeper_options options = {.state = state,
                                     .zygote_fd = -1,
                                     .zygote_pidfd = -1,
                                     .airlock_fd = -1,
                                     .id_first = KEEPER_ID_FIRST,
                                     .id_last = KEEPER_ID_LAST};
    int ends[2];

    *client = (struct client){.client_fd = -1, .keeper_end = -1, .created_fd = -1};
    client->init_fd = open(init, O_PATH | O_CLOEXEC);
    if (client->init_fd < 0)
        return error_errno(err, "opening %s", init);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return error_errno(err, "making a socket pair");
    client->client_fd = ends[0];
    client->keeper_end = ends[1];
    int r = zygote_start(false, &options.zygote_fd, &options.zygote_pidfd, err);
    if (r < 0)
        return r;
    client->zygote = pid_of(options.zygote_pidfd);
    options.client_fd = client->keeper_end;
    options.init_fd = client->init_fd;
    return keeper_new(&options, &client->keeper, err);
}

void client_stop(struct client *client)
{
    keeper_free(client->keeper);
    client->keeper = NULL;
    close_fd(&client->created_fd);
    close_fd(&client->init_fd);
    close_fd(&client->client_fd);
    close_fd(&client->keeper_end);
}

static void add_steps(struct client *client, struct wire_u64v steps)
{
    for (uint32_t i = 0; i < steps.count && i < STEP_COUNT; i++)
        client->steps_ns[i] += wire_u64v_at(steps, i);
}

static int handle_keeper(struct client *client, struct error *err)
{
    struct wire_message message;
    int fds[FD_PASS_MAX];
    size_t fd_count = 0;
    int r = link_receive(client->client_fd, WIRE_BY_KEEPER, WIRE_IN_RUNNING, frame, &message, fds, &fd_count);

    if (r <= 0)
        return error_set(err, ERROR_PROTOCOL, r < 0 ? -r : EPIPE, "hearing from the keeper");
    switch ((int)message.type) { /* only some of them come here */
    case WIRE_CREATED:
        client->created_fd = fds[0];
        client->live++;
        add_steps(client, message.created.steps_ns);
        return fcntl(fds[0], F_SETFL, 0) < 0 ? error_errno(err, "preparing the guest link") : 0;
    case WIRE_GONE:
        client->live--;
        return 0;
    case WIRE_REFUSED:
        return error_set(err, ERROR_SYSTEM, (int)message.refused.error, "sandbox %llu: %s: %s",
                         (unsigned long long)message.refused.sandbox, step_name(message.refused.step),
                         message.refused.detail.text);
    default:
        fd_close_many(fds, fd_count);
        return error_set(err, ERROR_PROTOCOL, 0, "the keeper sent %s", wire_name(message.type));
    }
}

/* Let the keeper and the conversation with it go on. 1 when the guest has something to say. */
static int turn(struct client *client, int guest_fd, struct error *err)
{
    struct pollfd ready[] = {{.fd = keeper_fd(client->keeper), .events = POLLIN},
                             {.fd = client->client_fd, .events = POLLIN},
                             {.fd = guest_fd, .events = POLLIN}};
    int wait_ms = keeper_wait_ms(client->keeper);
    int n = poll(ready, 3, wait_ms >= 0 ? wait_ms : REPLY_LIMIT_MS);

    if (client_interrupted)
        return error_set(err, ERROR_SYSTEM, EINTR, "asked to stop");
    if (n < 0 && errno != EINTR)
        return error_errno(err, "waiting");
    if (n == 0 && wait_ms < 0)
        return error_set(err, ERROR_SYSTEM, ETIMEDOUT, "waiting for the keeper or the sandbox");
    if (ready[0].revents != 0 || n == 0) {
        int r = keeper_dispatch(client->keeper, err);
        if (r <= 0)
            return r < 0 ? r : error_set(err, ERROR_PROTOCOL, EPIPE, "the keeper ended the conversation");
    }
    int r = ready[1].revents != 0 ? handle_keeper(client, err) : 0;
    return r < 0 ? r : ready[2].revents != 0;
}

static int ask(struct client *client, const struct wire_message *message, struct error *err)
{
    int r = link_send(client->client_fd, message, NULL, 0);

    return r < 0 ? error_set(err, ERROR_SYSTEM, -r, "asking the keeper to %s", wire_name(message->type)) : 0;
}

int client_create(struct client *client, struct guest *ret_guest, struct error *err)
{
    struct wire_message message = {.type = WIRE_CREATE,
                                   .create = {.sandbox = ++client->last_id,
                                              .flags = client->times ? WIRE_CREATE_TIMES : 0,
                                              .memory_bytes = MEMORY_BYTES,
                                              .disk_bytes = DISK_BYTES,
                                              .disk_inodes = DISK_INODES,
                                              .processes = PROCESSES,
                                              .hostname = wire_str("sandbox")}};
    int r = ask(client, &message, err);

    memset(client->steps_ns, 0, sizeof client->steps_ns);
    while (r == 0 && client->created_fd < 0)
        r = turn(client, -1, err);
    if (r < 0)
        return r;
    *ret_guest = (struct guest){.id = message.create.sandbox, .fd = TAKE_FD(client->created_fd)};
    return 0;
}

/* The guest's next message of this type; SETUP and HELLO may come before it. */
static int hear(struct client *client, struct guest *guest, enum wire_type wanted, struct wire_message *message,
                struct error *err)
{
    for (;;) {
        int r = turn(client, guest->fd, err);
        if (r < 0)
            return r;
        if (r == 0)
            continue;
        r = link_receive(guest->fd, WIRE_BY_GUEST, guest->ready ? WIRE_IN_RUNNING : WIRE_IN_STARTING, frame, message,
                         NULL, NULL);
        if (r <= 0)
            return error_set(err, ERROR_PROTOCOL, r < 0 ? -r : EPIPE, "hearing from the sandbox");
        if (message->type == WIRE_SETUP) {
            add_steps(client, message->setup.steps_ns);
            if (message->setup.error != 0)
                return error_set(err, ERROR_SYSTEM, (int)message->setup.error, "%s: %s", step_name(message->setup.step),
                                 message->setup.detail.text);
        }
        guest->ready = guest->ready || message->type == WIRE_HELLO;
        if (message->type == wanted)
            return 0;
    }
}

int client_wait_ready(struct client *client, struct guest *guest, struct error *err)
{
    struct wire_message message;

    return hear(client, guest, WIRE_HELLO, &message, err);
}

int client_run_true(struct client *client, struct guest *guest, struct error *err)
{
    static const char strings[] = "true\0PATH=/usr/local/bin:/usr/bin:/bin\0HOME=/home/sandbox\0LANG=C.UTF-8";
    struct wire_message message = {.type = WIRE_EXEC,
                                   .exec = {.channel = CHANNEL,
                                            .filter = WIRE_FILTER_STANDARD,
                                            .uid = NOBODY,
                                            .gid = NOBODY,
                                            .file_bytes = DISK_BYTES,
                                            .open_files = OPEN_FILES,
                                            .folder = wire_str("/workspace"),
                                            .argc = 1,
                                            .envc = 3,
                                            .strings = {.data = (const uint8_t *)strings, .length = sizeof strings}}};
    int r = link_send(guest->fd, &message, NULL, 0);

    if (r < 0)
        return error_set(err, ERROR_SYSTEM, -r, "sending the command to the sandbox");
    r = hear(client, guest, WIRE_EXIT, &message, err);
    if (r == 0 && (message.exit.kind != WIRE_EXIT_CODE || message.exit.value != 0))
        r = error_set(err, ERROR_SYSTEM, 0, "`true` ended with kind %u, value %u", message.exit.kind,
                      message.exit.value);
    return r;
}

int client_destroy(struct client *client, struct guest *guest, struct error *err)
{
    struct wire_message message = {.type = WIRE_DESTROY, .destroy = {.sandbox = guest->id}};

    int r = ask(client, &message, err);

    /* Before the link closes, which would end init by itself: the request would come too late and be refused. */
    if (r == 0 && keeper_dispatch(client->keeper, err) <= 0)
        r = -EIO;
    close_fd(&guest->fd);
    return r;
}

int client_wait_gone(struct client *client, size_t left, struct error *err)
{
    int r = 0;

    while (r == 0 && client->live > left)
        r = turn(client, -1, err);
    return r;
}
