#include "cli/session.h"

#include "base/beside.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/sys.h"
#include "cli/host.h"
#include "cli/terminal.h"
#include "cli/words.h"
#include "keeper/keeper.h"
#include "keeper/zygote.h"
#include "wire/link.h"

#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

enum {
    SANDBOX = 1, /* the only one of this keeper */
    CHANNEL = 1, /* the only one of this sandbox */
    COLLECT_CAP = 1 << 20,
    INODE_PER_BYTES = 4096,
    INODE_PER_IMAGE_BYTES = 16384, /* there each takes room whether it is used or not */
    INODES_LEAST = 1024,
    REPLY_LIMIT_MS = 20000,   /* a keeper that says nothing for so long never will */
    POLICY_LIMIT_MS = 300000, /* the first time it reads through all of /usr, perhaps from a slow disk */
    ERRNO_MAX = 4095,
    READ_LIMIT_MS = 2000, /* an init that reads nothing for so long never will */
};

static uint8_t frame[WIRE_FRAME_MAX];

void session_init(struct session *session, struct run_options *options, uint64_t start_ns)
{
    *session = (struct session){
        .options = options,
        .client_fd = -1,
        .keeper_end = -1,
        .init_fd = -1,
        .guest_fd = -1,
        .result = {.file_bytes = options->file_bytes, .disk_is_image = options->disk_is_image},
        .start_ns = start_ns,
    };
    net_init(&session->net);
    sink_init(&session->sinks[0], options->json ? -1 : STDOUT_FILENO, COLLECT_CAP);
    sink_init(&session->sinks[1], options->json ? -1 : STDERR_FILENO, COLLECT_CAP);
}

void session_release(struct session *session)
{
    keeper_free(session->keeper);
    net_release(&session->net);
    close_fd(&session->guest_fd);
    close_fd(&session->init_fd);
    close_fd(&session->client_fd);
    close_fd(&session->keeper_end);
    sink_release(&session->sinks[0]);
    sink_release(&session->sinks[1]);
}

static int start_keeper(struct session *session, struct error *err)
{
    struct keeper_options options = {
        .state = session->options->state,
        .zygote_fd = -1,
        .zygote_pidfd = -1,
        .airlock_fd = -1,
        .single = true,
        .id_first = KEEPER_ID_FIRST,
        .id_last = KEEPER_ID_LAST,
    };
    int ends[2] = {-1, -1};
    /* First of all, so that it makes the network namespace while we do the rest. */
    int r = zygote_start(true, &options.zygote_fd, &options.zygote_pidfd, err);

    if (r == 0)
        r = net_start(&session->net, session->options, SANDBOX, err);
    if (r == 0)
        r = beside_open("hutch-init", &session->init_fd, err);
    if (r == 0 && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        r = error_errno(err, "making a socket pair");
    if (r < 0) {
        close_fd(&options.zygote_fd);
        close_fd(&options.zygote_pidfd);
        return r;
    }
    session->client_fd = ends[0];
    session->keeper_end = ends[1];
    options.client_fd = session->keeper_end;
    options.init_fd = session->init_fd;
    options.airlock_fd = session->net.keeper_fd;
    return keeper_new(&options, &session->keeper, err);
}

/* Let the keeper work until it has something to say. */
static int wait_for_keeper(struct session *session, struct error *err)
{
    uint64_t limit_ms = session->options->only_count > 0 ? POLICY_LIMIT_MS : REPLY_LIMIT_MS;
    uint64_t deadline_ns = clock_now_ns() + limit_ms * 1000000U;

    for (;;) {
        int r = keeper_dispatch(session->keeper, err);
        if (r <= 0)
            return r < 0 ? r : error_set(err, ERROR_SYSTEM, EPIPE, "talking to the keeper");
        struct pollfd ready[] = {{.fd = session->client_fd, .events = POLLIN},
                                 {.fd = keeper_fd(session->keeper), .events = POLLIN}};
        int wait_ms = keeper_wait_ms(session->keeper);
        if (poll(ready, 2, wait_ms >= 0 ? wait_ms : 1000) < 0 && errno != EINTR)
            return error_errno(err, "waiting for the keeper");
        if (ready[0].revents != 0)
            return session_handle_keeper(session, err);
        if (clock_now_ns() > deadline_ns)
            return error_set(err, ERROR_SYSTEM, ETIMEDOUT, "waiting for the keeper");
    }
}

struct create_parts {
    int fds[FD_PASS_MAX];
    size_t fd_count;
    uint64_t dir_flags[WIRE_DIRS_MAX];
    struct buf dirs;
    struct buf only;
};

static int open_folders(const struct run_options *options, struct create_parts *parts, struct error *err)
{
    int r = 0;

    if (options->root != NULL)
        r = host_open(options->root, "--root", O_PATH | O_DIRECTORY, &parts->fds[0], err);
    parts->fd_count = options->root != NULL && r == 0 ? 1 : 0;
    for (size_t i = 0; r == 0 && i < options->dir_count; i++) {
        const struct option_dir *dir = &options->dirs[i];
        r = host_open(dir->host, "--dir", O_PATH | O_DIRECTORY, &parts->fds[parts->fd_count], err);
        if (r < 0)
            return r;
        parts->fd_count++;
        parts->dir_flags[i] = dir->writable ? WIRE_DIR_WRITABLE : 0;
        if (buf_append(&parts->dirs, dir->guest, strlen(dir->guest) + 1) < 0)
            return error_set(err, ERROR_LIMIT, 0, "--dir: the paths inside are too long");
    }
    return r;
}

static int gather_only(const struct run_options *options, struct create_parts *parts, struct error *err)
{
    for (size_t i = 0; i < options->only_count; i++) {
        if (buf_append(&parts->only, options->only[i], strlen(options->only[i]) + 1) < 0)
            return error_set(err, ERROR_LIMIT, 0, "--only: the list is too long");
    }
    return 0;
}

static int send_create(struct session *session, const struct create_parts *parts, struct error *err)
{
    const struct run_options *options = session->options;
    uint64_t inodes = options->disk_bytes / (options->disk_is_image ? INODE_PER_IMAGE_BYTES : INODE_PER_BYTES);
    struct wire_message message = {
        .type = WIRE_CREATE,
        .create =
            {
                .sandbox = SANDBOX,
                .flags = (options->root != NULL ? WIRE_CREATE_FOLDER : 0) |
                         (options->root_rw ? WIRE_CREATE_ROOT_RW : 0) |
                         (options->disk_is_image ? WIRE_CREATE_IMAGE : 0) | (options->tty ? WIRE_CREATE_TERMINAL : 0) |
                         (session->net.keeper_fd >= 0 ? WIRE_CREATE_NETWORK : 0) |
                         (options->stats || options->json ? WIRE_CREATE_TIMES : 0),
                .memory_bytes = options->memory_bytes,
                .disk_bytes = options->disk_bytes,
                .disk_inodes = inodes < INODES_LEAST ? INODES_LEAST
                               : inodes > INT32_MAX  ? INT32_MAX
                                                     : inodes,
                .processes = options->processes > UINT32_MAX ? UINT32_MAX : (uint32_t)options->processes,
                .cpu_milli = (uint32_t)options->cpu_milli,
                .hostname = wire_str("sandbox"),
                .dirs = {.data = (const char *)parts->dirs.data,
                         .length = (uint32_t)parts->dirs.length,
                         .count = (uint32_t)options->dir_count},
                .dir_flags = {.data = (const uint8_t *)parts->dir_flags, .count = (uint32_t)options->dir_count},
                .user = options->uid,
                .dir_owner_uid = host_owner_uid(),
                .dir_owner_gid = host_owner_gid(),
                .only = {.data = (const char *)parts->only.data,
                         .length = (uint32_t)parts->only.length,
                         .count = (uint32_t)options->only_count},
            },
    };
    int r = link_send(session->client_fd, &message, parts->fds, parts->fd_count);

    return r < 0 ? error_set(err, ERROR_SYSTEM, -r, "asking for a sandbox") : 0;
}

static int create(struct session *session, struct error *err)
{
    struct create_parts parts = {.dirs = buf_init(8192), .only = buf_init(4096)};
    int r = open_folders(session->options, &parts, err);

    if (r == 0)
        r = gather_only(session->options, &parts, err);
    if (r == 0)
        r = send_create(session, &parts, err);
    fd_close_many(parts.fds, parts.fd_count);
    buf_release(&parts.dirs);
    buf_release(&parts.only);
    while (r == 0 && session->guest_fd < 0)
        r = wait_for_keeper(session, err);
    return r;
}

/*
 * Init may be gone before we know: that is not an error of ours, its end is told by the keeper. It always reads: what
 * it was promised room for it keeps. One that does not is not ours any more.
 */
int session_send(struct session *session, const struct wire_message *message, struct error *err)
{
    int r = session->guest_fd >= 0 ? link_send(session->guest_fd, message, NULL, 0) : 0;

    if (r == -EAGAIN) {
        struct pollfd room = {.fd = session->guest_fd, .events = POLLOUT};
        (void)poll(&room, 1, READ_LIMIT_MS);
        r = link_send(session->guest_fd, message, NULL, 0);
    }
    if (r < 0 && r != -EPIPE && r != -ECONNRESET)
        return error_set(err, ERROR_SYSTEM, -r, "talking to the sandbox");
    return 0;
}

/* ARGS frames for what does not fit into EXEC. Returns how many bytes went. */
static int send_args(struct session *session, const struct buf *strings, size_t *ret_sent, struct error *err)
{
    size_t sent = 0;

    while (strings->length - sent > 49152) {
        struct wire_message message = {
            .type = WIRE_ARGS,
            .args = {.channel = CHANNEL, .strings = {.data = strings->data + sent, .length = 49152}}};
        int r = session_send(session, &message, err);
        if (r < 0)
            return r;
        sent += message.args.strings.length;
    }
    *ret_sent = sent;
    return 0;
}

int session_execute(struct session *session, struct error *err)
{
    const struct run_options *options = session->options;
    struct buf strings = buf_init(WIRE_STRINGS_MAX);
    size_t sent = 0;
    struct wire_message message = {
        .type = WIRE_EXEC,
        .exec = {.channel = CHANNEL,
                 .flags =
                     (options->json ? WIRE_EXEC_COLLECT : 0) | WIRE_EXEC_STDIN | (options->tty ? WIRE_EXEC_TTY : 0),
                 .filter = (uint8_t)options->filter,
                 .uid = options->uid,
                 .gid = options->uid,
                 .stdout_cap = options->json ? COLLECT_CAP : 0,
                 .stderr_cap = options->json ? COLLECT_CAP : 0,
                 .file_bytes = options->file_bytes,
                 .open_files = (uint32_t)options->open_files,
                 .folder = wire_str(options->folder)},
    };

    if (options->tty)
        terminal_size(&message.exec.rows, &message.exec.columns);
    int r = words_gather(options, &strings, &message.exec.argc, &message.exec.envc);
    if (r < 0)
        r = error_set(err, ERROR_LIMIT, E2BIG, "the arguments and the environment may be %d KiB together",
                      WIRE_STRINGS_MAX / 1024);
    else if ((r = send_args(session, &strings, &sent, err)) == 0) {
        message.exec.strings =
            (struct wire_bytes){.data = strings.data + sent, .length = (uint32_t)(strings.length - sent)};
        r = session_send(session, &message, err);
    }
    buf_release(&strings);
    session->has_stdin = true;
    return r;
}

/* What the sandbox may be given can't be more than what we have ourselves: have as much, or say so. */
static int raise_limit(int resource, uint64_t *wanted, bool asked, const char *option, struct error *err)
{
    struct rlimit limit;

    if (*wanted == 0 || sys_prlimit(resource, NULL, &limit) < 0 || limit.rlim_max >= *wanted)
        return 0;
    struct rlimit raised = {limit.rlim_cur, *wanted};
    if (sys_prlimit(resource, &raised, NULL) == 0)
        return 0;
    if (asked)
        return error_set(err, ERROR_LIMIT, EPERM, "%s: your own hard limit is %llu and can't be raised", option,
                         (unsigned long long)limit.rlim_max);
    *wanted = limit.rlim_max;
    return 0;
}

int session_start(struct session *session, struct error *err)
{
    int limits = raise_limit(RLIMIT_NOFILE, &session->options->open_files, session->options->open_files_asked,
                             "--open-files", err);
    if (limits == 0)
        limits = raise_limit(RLIMIT_FSIZE, &session->options->file_bytes, true, "--file-size", err);
    if (limits < 0)
        return limits;
    int r = start_keeper(session, err);

    if (r == 0)
        r = create(session, err);
    if (r == 0)
        r = net_wait(&session->net, err);
    return r < 0 || session->options->puts.count > 0 ? r : session_execute(session, err);
}

static void add_steps(struct session *session, struct wire_u64v steps)
{
    for (uint32_t i = 0; i < steps.count && i < STEP_COUNT; i++)
        session->result.steps_ns[i] += wire_u64v_at(steps, i);
}

int session_handle_keeper(struct session *session, struct error *err)
{
    struct wire_message message;
    int fds[FD_PASS_MAX];
    size_t fd_count = 0;
    int r = link_receive(session->client_fd, WIRE_BY_KEEPER, WIRE_IN_RUNNING, frame, &message, fds, &fd_count);

    if (r <= 0)
        return error_set(err, ERROR_PROTOCOL, r < 0 ? -r : EPIPE, "hearing from the keeper");
    switch ((int)message.type) { /* only some of them come here */
    case WIRE_CREATED:
        if (fd_count != 1)
            return error_set(err, ERROR_PROTOCOL, EBADMSG, "hearing from the keeper");
        session->guest_fd = fds[0];
        add_steps(session, message.created.steps_ns);
        return fcntl(session->guest_fd, F_SETFL, O_NONBLOCK) < 0 ? error_errno(err, "preparing the guest link") : 0;
    case WIRE_REFUSED:
        session->failed_step = message.refused.step;
        err->code = message.refused.step == STEP_REQUEST ? ERROR_INVALID : ERROR_SYSTEM;
        err->err = (int)message.refused.error;
        (void)snprintf(err->message, sizeof err->message, "%s", message.refused.detail.text);
        return -err->err;
    case WIRE_OOM:
        session->result.oom_kills = message.oom.kills;
        /* The kernel chose one process; the command it belonged to is not left half alive. */
        return session_signal(session, SIGKILL, WIRE_SCOPE_TREE, err);
    case WIRE_USAGE:
        session->result.usage = message.usage;
        session->result.has_usage = true;
        session->result.oom_kills = message.usage.oom_kills;
        session->result.processes_refused = message.usage.processes_refused;
        return 0;
    case WIRE_GONE:
        session->gone = true;
        session->wait_status = (int)message.gone.wait_status;
        if (session->state != SESSION_ENDED) {
            session->result.oom_kills = message.gone.oom_kills;
            session->result.processes_refused = message.gone.processes_refused;
        }
        /* What init said before it ended is still in the link, and comes first. */
        if (session->guest_fd < 0)
            session->state = SESSION_ENDED;
        return 0;
    default:
        fd_close_many(fds, fd_count);
        return 0;
    }
}

static int setup_failed(struct session *session, const struct wire_setup *setup, struct error *err)
{
    add_steps(session, setup->steps_ns);
    if (setup->error == 0)
        return 0;
    if (setup->error > ERRNO_MAX)
        return -EBADMSG;
    session->failed_step = setup->step;
    return error_set(err, ERROR_SYSTEM, (int)setup->error, "%s", setup->detail.text);
}

static int ended(struct session *session, const struct wire_exit *exit)
{
    int r = sink_take(&session->sinks[0], exit->stdout_offset, exit->stdout_tail.data, exit->stdout_tail.length);

    if (r == 0)
        r = sink_take(&session->sinks[1], exit->stderr_offset, exit->stderr_tail.data, exit->stderr_tail.length);
    session->result.exit = *exit;
    session->result.has_exit = true;
    session->state = SESSION_ENDED;
    return r;
}

static int handle_message(struct session *session, const struct wire_message *message, struct error *err)
{
    switch ((int)message->type) { /* only some of them come here */
    case WIRE_SETUP:
        return setup_failed(session, &message->setup, err);
    case WIRE_HELLO:
        session->state = SESSION_RUNNING;
        session->result.features = message->hello.features;
        session->result.steps_ns[STEP_LANDLOCK] = message->hello.landlock_ns;
        session->result.ready_ns = clock_now_ns() - session->start_ns;
        return 0;
    case WIRE_STDOUT:
        return sink_take(&session->sinks[0], message->stdout_data.offset, message->stdout_data.data.data,
                         message->stdout_data.data.length);
    case WIRE_STDERR:
        return sink_take(&session->sinks[1], message->stderr_data.offset, message->stderr_data.data.data,
                         message->stderr_data.data.length);
    case WIRE_TAKEN:
        if (message->taken.offset > session->stdin_sent || message->taken.offset < session->stdin_taken)
            return -EBADMSG;
        session->stdin_taken = message->taken.offset;
        session->has_stdin = session->has_stdin && message->taken.closed == 0;
        return 0;
    case WIRE_EXIT:
        return message->exit.channel == CHANNEL ? ended(session, &message->exit) : -EBADMSG;
    default:
        return -EBADMSG;
    }
}

/* After HELLO every message starts with its channel. */
static bool is_of_transfer(const struct session *session, const struct wire_message *message)
{
    return session->transfer != NULL && message->ack.channel == session->transfer->question.channel;
}

int session_handle_guest(struct session *session, struct error *err)
{
    struct wire_message message;
    enum wire_state state = session->state == SESSION_STARTING ? WIRE_IN_STARTING : WIRE_IN_RUNNING;
    int r = link_receive(session->guest_fd, WIRE_BY_GUEST, state, frame, &message, NULL, NULL);

    if (r == -EAGAIN || r == -ECONNRESET)
        return 0; /* it ended with something unread; what it had said itself can still be heard */
    if (r == 0) {
        close_fd(&session->guest_fd); /* the keeper's GONE says why */
        if (session->gone)
            session->state = SESSION_ENDED;
        return 0;
    }
    if (r > 0)
        r = is_of_transfer(session, &message) ? transfer_hear(session->transfer, &message)
                                              : handle_message(session, &message, err);
    if (r < 0 && err->message[0] == '\0')
        return error_set(err, ERROR_PROTOCOL, -r, "init sent what it may not; the sandbox was ended");
    return r;
}

size_t session_stdin_room(const struct session *session)
{
    uint64_t ahead = session->stdin_sent - session->stdin_taken;

    if (!session->has_stdin || session->state != SESSION_RUNNING || session->guest_fd < 0 || ahead >= WIRE_WINDOW)
        return 0;
    return WIRE_WINDOW - ahead < WIRE_DATA_MAX ? (size_t)(WIRE_WINDOW - ahead) : WIRE_DATA_MAX;
}

int session_send_stdin(struct session *session, const void *data, size_t length, struct error *err)
{
    struct wire_message message = {.type = WIRE_STDIN,
                                   .stdin_data = {.channel = CHANNEL,
                                                  .offset = session->stdin_sent,
                                                  .end = length == 0,
                                                  .data = {.data = data, .length = (uint32_t)length}}};

    session->stdin_sent += length;
    if (length == 0)
        session->has_stdin = false;
    return session_send(session, &message, err);
}

int session_signal(struct session *session, int signal_number, enum wire_scope scope, struct error *err)
{
    struct wire_message message = {
        .type = WIRE_SIGNAL,
        .signal = {.channel = CHANNEL, .signal = (uint32_t)signal_number, .scope = (uint8_t)scope}};

    return session->state == SESSION_ENDED ? 0 : session_send(session, &message, err);
}

int session_resize(struct session *session, uint16_t rows, uint16_t columns, struct error *err)
{
    struct wire_message message = {.type = WIRE_RESIZE,
                                   .resize = {.channel = CHANNEL, .rows = rows, .columns = columns}};

    return session->state == SESSION_ENDED ? 0 : session_send(session, &message, err);
}

static int close_stream(struct session *session, size_t stream, struct error *err)
{
    struct wire_message message = {.type = WIRE_CLOSE,
                                   .close = {.channel = CHANNEL, .stream = (uint8_t)(WIRE_STREAM_STDOUT + stream)}};

    session->sinks[stream].broken_told = true;
    return session_send(session, &message, err);
}

int session_hang_up(struct session *session, struct error *err)
{
    session->has_stdin = false;
    return session->state == SESSION_ENDED || session->sinks[0].broken_told ? 0 : close_stream(session, 0, err);
}

int session_acknowledge(struct session *session, struct error *err)
{
    struct sink *sinks = session->sinks;
    int r = 0;

    if (session->state != SESSION_RUNNING)
        return 0;
    for (size_t i = 0; i < 2 && r == 0; i++) {
        if (sinks[i].broken && !sinks[i].broken_told)
            r = close_stream(session, i, err);
    }
    if (r == 0 && (sink_ack_due(&sinks[0]) || sink_ack_due(&sinks[1]))) {
        struct wire_message message = {
            .type = WIRE_ACK,
            .ack = {.channel = CHANNEL, .stdout_offset = sinks[0].done, .stderr_offset = sinks[1].done}};
        sinks[0].acked = sinks[0].done;
        sinks[1].acked = sinks[1].done;
        r = session_send(session, &message, err);
    }
    return r;
}

/* The counts matter when somebody asked for them, or when they may explain how it ended. */
static bool must_measure(const struct session *session)
{
    const struct wire_exit *exit = &session->result.exit;

    return session->options->stats || session->options->json || !session->result.has_exit ||
           exit->kind != WIRE_EXIT_CODE || exit->value != 0;
}

int session_measure(struct session *session, struct error *err)
{
    struct wire_message message = {.type = WIRE_MEASURE, .measure = {.sandbox = SANDBOX}};
    int r = 0;

    if (!session->gone && must_measure(session)) {
        r = link_send(session->client_fd, &message, NULL, 0);
        if (r < 0)
            return error_set(err, ERROR_SYSTEM, -r, "talking to the keeper");
        while (r == 0 && !session->result.has_usage && !session->gone)
            r = wait_for_keeper(session, err);
    }
    session->result.total_ns = clock_now_ns() - session->start_ns;
    return r;
}

void session_leave(struct session *session)
{
    if (session->keeper == NULL || !keeper_may_leave(session->keeper))
        session_release(session);
}
