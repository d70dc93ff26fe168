/*
 * init: PID 1 of every sandbox. Runs commands, moves files, forwards their streams, reaps what ends.
 *
 * INSIDE THE SANDBOX: hostile code may take it over, so it has nothing that the sandbox does not have; the gateway
 * trusts nothing it says. Static, one thread, one event loop, a fixed number of channels. It inherits two descriptors:
 * 3, the guest link; 4, its own cgroup, below which it makes one per command; and sometimes a third: 5, a /proc that
 * can be written.
 *
 * Nothing is ever queued: each channel knows what it still has to say, and says it when the link takes it.
 */
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "init/channel.h"
#include "init/confine.h"
#include "init/terminal.h"
#include "wire/landlock.h"
#include "wire/link.h"
#include "wire/steps.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { CHANNELS_MAX = 256, REFUSALS_MAX = 64, EVENTS_AT_ONCE = 32 };

enum { SCOPED = WIRE_HELLO_SCOPED_SIGNALS | WIRE_HELLO_SCOPED_SOCKETS };

enum watched { WATCH_GUEST, WATCH_SIGNALS, WATCH_STDIN, WATCH_STDOUT, WATCH_STDERR, WATCH_GROUP };

struct init {
    int epoll_fd;
    int signal_fd;
    struct groups groups;
    bool guest_full;
    uint64_t args_channel; /* whose strings are being gathered */
    char *args;
    size_t args_length;
    bool args_lost; /* there were too many */
    struct channel *channels[CHANNELS_MAX];
    struct {
        uint64_t channel;
        int error;
    } refusals[REFUSALS_MAX]; /* what could not even become a channel, and was not told yet */
    size_t refusal_count;
};

static struct init init;
static uint8_t frame[WIRE_FRAME_MAX];

static void watch(int operation, int fd, uint32_t events, enum watched what, size_t slot)
{
    struct epoll_event event = {.events = events, .data.u64 = (uint64_t)slot << 8 | what};

    if (epoll_ctl(init.epoll_fd, operation, fd, &event) < 0)
        _exit(2);
}

static void change_watch(int fd, uint32_t *watched, uint32_t wanted, enum watched what, size_t slot)
{
    if (fd >= 0 && wanted != *watched)
        watch(*watched == 0 ? EPOLL_CTL_ADD : wanted == 0 ? EPOLL_CTL_DEL : EPOLL_CTL_MOD, fd, wanted, what, slot);
    *watched = fd >= 0 ? wanted : 0;
}

/* Watch exactly what the channel can use now: a pipe with nothing to do would wake us for ever. */
static void update_watches(size_t slot)
{
    struct channel *channel = init.channels[slot];
    uint32_t input = channel_has_stdin_left(channel) ? EPOLLOUT : 0;

    for (size_t i = 0; i < CHANNEL_STREAMS; i++) {
        struct output *output = &channel->outputs[i];
        uint32_t wanted = output_has_room(output) ? EPOLLIN : 0;
        if (i == 0 && channel->has_terminal)
            wanted |= input; /* one descriptor for both ways */
        change_watch(output->fd, &output->watched, wanted, i == 0 ? WATCH_STDOUT : WATCH_STDERR, slot);
    }
    if (!channel->has_terminal)
        change_watch(channel->stdin_fd, &channel->stdin_watched, input, WATCH_STDIN, slot);
    /* To reap is not enough: some kernels let a process leave its cgroup only after that. */
    change_watch(channel->group.events_fd, &channel->group_watched, EPOLLPRI, WATCH_GROUP, slot);
}

/* True when it has gone out, false when the link is full. */
static bool send(const struct wire_message *message)
{
    int r = init.guest_full ? -EAGAIN : link_send(WIRE_GUEST_FD, message, NULL, 0);

    if (r == -EAGAIN && !init.guest_full) {
        init.guest_full = true;
        watch(EPOLL_CTL_MOD, WIRE_GUEST_FD, EPOLLIN | EPOLLOUT, WATCH_GUEST, 0);
    }
    if (r < 0 && r != -EAGAIN)
        _exit(0);
    return r == 0;
}

/* Say what there is to say, until the link is full. */
static void speak(size_t slot)
{
    struct wire_message message;

    while (channel_next_message(init.channels[slot], &message) && send(&message))
        channel_sent(init.channels[slot], &message);
}

static void speak_refusals(void)
{
    size_t told = 0;

    for (; told < init.refusal_count; told++) {
        struct wire_message message = {.type = WIRE_EXIT,
                                       .exit = {.channel = init.refusals[told].channel,
                                                .kind = WIRE_EXIT_NOT_STARTED,
                                                .value = (uint32_t)init.refusals[told].error,
                                                .failed = WIRE_FAILED_SETUP}};
        if (!send(&message))
            break;
    }
    init.refusal_count -= told;
    memmove(init.refusals, init.refusals + told, init.refusal_count * sizeof *init.refusals);
}

static void refuse(uint64_t channel, int error)
{
    if (init.refusal_count == REFUSALS_MAX)
        _exit(3); /* asks for ever and never listens */
    init.refusals[init.refusal_count].channel = channel;
    init.refusals[init.refusal_count++].error = error;
}

static void settle_all(void)
{
    speak_refusals();
    for (size_t slot = 0; slot < CHANNELS_MAX; slot++) {
        if (init.channels[slot] == NULL)
            continue;
        if (channel_is_over(init.channels[slot])) {
            channel_free(init.channels[slot]);
            init.channels[slot] = NULL;
            continue;
        }
        speak(slot);
        update_watches(slot);
    }
}

static struct channel *find(uint64_t id, size_t *ret_slot)
{
    for (size_t slot = 0; slot < CHANNELS_MAX; slot++) {
        if (init.channels[slot] != NULL && init.channels[slot]->id == id && !init.channels[slot]->released) {
            *ret_slot = slot;
            return init.channels[slot];
        }
    }
    return NULL;
}

static void forget_args(void)
{
    free(init.args);
    init.args = NULL;
    init.args_length = 0;
    init.args_lost = false;
}

static int gather(uint64_t channel, const uint8_t *strings, size_t length)
{
    if (init.args_channel != channel)
        forget_args();
    init.args_channel = channel;
    char *args = init.args_lost || length > WIRE_STRINGS_MAX - init.args_length
                     ? NULL
                     : realloc(init.args, init.args_length + length + 1);
    if (args == NULL) {
        init.args_lost = true;
        return -E2BIG;
    }
    memcpy(args + init.args_length, strings, length);
    init.args = args;
    init.args_length += length;
    return 0;
}

/* A slot for a new channel. -EEXIST: a client that came back and was not sure. */
static int find_free(uint64_t id, size_t *ret_slot)
{
    size_t slot = 0;

    if (find(id, &slot) != NULL)
        return -EEXIST;
    while (slot < CHANNELS_MAX && init.channels[slot] != NULL)
        slot++;
    if (slot == CHANNELS_MAX)
        return -EAGAIN;
    *ret_slot = slot;
    return 0;
}

static void start(const struct wire_exec *exec)
{
    size_t slot = 0;
    int r = find_free(exec->channel, &slot);

    if (r == 0)
        r = gather(exec->channel, exec->strings.data, exec->strings.length);
    if (r == 0) {
        init.channels[slot] = channel_new(exec, init.args, init.args_length, &init.groups);
        r = init.channels[slot] == NULL ? -ENOMEM : 0;
    }
    forget_args();
    if (r < 0 && r != -EEXIST)
        refuse(exec->channel, -r);
}

static void start_file(const struct wire_file *file)
{
    size_t slot = 0;
    int r = find_free(file->channel, &slot);

    if (r == 0) {
        init.channels[slot] = channel_new_file(file);
        r = init.channels[slot] == NULL ? -ENOMEM : 0;
    }
    if (r < 0 && r != -EEXIST)
        refuse(file->channel, -r);
}

static int acknowledge(struct channel *channel, const struct wire_ack *ack)
{
    int r = output_ack(&channel->outputs[0], ack->stdout_offset);

    if (r == 0)
        r = output_ack(&channel->outputs[1], ack->stderr_offset);
    channel_drain(channel);
    return r;
}

/* A message about a channel there is. All of them start with its id. */
static int handle_channel(size_t slot, const struct wire_message *message)
{
    struct channel *channel = init.channels[slot];

    switch ((int)message->type) { /* only some of them come here */
    case WIRE_STDIN:
        return channel_write(channel, &message->stdin_data);
    case WIRE_ACK:
        return acknowledge(channel, &message->ack);
    case WIRE_CLOSE:
        channel_close_stream(channel, message->close.stream);
        return 0;
    case WIRE_RESIZE:
        channel_resize(channel, message->resize.rows, message->resize.columns);
        return 0;
    case WIRE_SIGNAL:
        ignore_result(channel_signal(channel, message->signal.signal, message->signal.scope, &init.groups));
        return 0;
    case WIRE_RESUME:
        return channel_resume(channel, &message->resume);
    case WIRE_RELEASE:
        channel_release(channel, &init.groups);
        return 0;
    default:
        return 0;
    }
}

static void handle_message(const struct wire_message *message)
{
    size_t slot = 0;

    switch ((int)message->type) { /* only some of them come here */
    case WIRE_ARGS:
        /* Should they be too many, the EXEC that follows says so. */
        ignore_result(gather(message->args.channel, message->args.strings.data, message->args.strings.length));
        return;
    case WIRE_EXEC:
        start(&message->exec);
        return;
    case WIRE_FILE:
        start_file(&message->file);
        return;
    case WIRE_DIAL:
        refuse(message->dial.channel, ENOSYS);
        return;
    default:
        if (find(message->ack.channel, &slot) != NULL && handle_channel(slot, message) < 0)
            _exit(3); /* a client that breaks the protocol is no client of ours */
    }
}

static void handle_guest(uint32_t events)
{
    struct wire_message message;

    if ((events & EPOLLOUT) != 0 && init.guest_full) {
        init.guest_full = false;
        watch(EPOLL_CTL_MOD, WIRE_GUEST_FD, EPOLLIN, WATCH_GUEST, 0);
    }
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) == 0)
        return;
    int r = link_receive(WIRE_GUEST_FD, WIRE_BY_CLIENT, WIRE_IN_RUNNING, frame, &message, NULL, NULL);
    if (r == -EAGAIN)
        return;
    if (r <= 0)
        _exit(r == 0 ? 0 : 3); /* and with PID 1 ends the whole sandbox */
    handle_message(&message);
}

static void reap(void)
{
    struct signalfd_siginfo info;
    struct rusage usage;
    int status;
    pid_t pid;

    ignore_result(read(init.signal_fd, &info, sizeof info));
    while ((pid = wait4(-1, &status, WNOHANG, &usage)) > 0 || (pid < 0 && errno != ECHILD)) {
        if (pid < 0 && errno != EINTR)
            _exit(2); /* better than a command whose end nobody hears of */
        for (size_t slot = 0; slot < CHANNELS_MAX; slot++) {
            struct channel *channel = init.channels[slot];
            if (channel != NULL && channel->pid == pid && channel->state == CHANNEL_RUNNING)
                channel_reaped(channel, status, &usage, &init.groups);
        }
    }
    for (size_t slot = 0; slot < CHANNELS_MAX; slot++) {
        if (init.channels[slot] != NULL)
            channel_settle(init.channels[slot], &init.groups);
    }
}

static void flush_stdin(struct channel *channel)
{
    if (channel != NULL && channel->stdin_fd >= 0)
        channel_flush_stdin(channel);
}

static void handle_event(const struct epoll_event *event)
{
    enum watched what = (enum watched)(event->data.u64 & 0xff);
    struct channel *channel = init.channels[(event->data.u64 >> 8) % CHANNELS_MAX];

    switch (what) {
    case WATCH_GUEST:
        handle_guest(event->events);
        break;
    case WATCH_SIGNALS:
        reap();
        break;
    case WATCH_STDIN:
        flush_stdin(channel);
        break;
    case WATCH_STDOUT:
    case WATCH_STDERR:
        if (channel != NULL)
            channel_drain(channel);
        if ((event->events & EPOLLOUT) != 0)
            flush_stdin(channel); /* a terminal */
        break;
    case WATCH_GROUP:
        if (channel != NULL)
            channel_settle(channel, &init.groups);
        break;
    }
}

/* One of the last steps in making the sandbox has failed. */
static _Noreturn void give_up(enum step step, const char *detail)
{
    struct wire_message message = {.type = WIRE_SETUP,
                                   .setup = {.step = step, .error = (uint32_t)errno, .detail = wire_str(detail)}};

    ignore_result(link_send(WIRE_GUEST_FD, &message, NULL, 0));
    _exit(2);
}

/* Our own cgroup, or -1 where whoever started us has none to give. */
static int find_cgroup(void)
{
    struct stat st;

    if (fstat(WIRE_CGROUP_FD, &st) < 0) {
        if (errno != EBADF)
            give_up(STEP_INIT, "looking at its cgroup");
        return -1;
    }
    if (!S_ISDIR(st.st_mode))
        return -1;
    if (fcntl(WIRE_CGROUP_FD, F_SETFD, FD_CLOEXEC) < 0)
        give_up(STEP_INIT, "keeping its cgroup to itself");
    return WIRE_CGROUP_FD;
}

static void set_up(void)
{
    sigset_t all;
    sigset_t child;

    (void)sigfillset(&all);
    (void)sigemptyset(&child);
    (void)sigaddset(&child, SIGCHLD);
    if (prctl(PR_SET_DUMPABLE, 0) < 0)
        give_up(STEP_INIT, "forbidding others to look into it");
    if (sigprocmask(SIG_SETMASK, &all, NULL) < 0)
        give_up(STEP_INIT, "blocking signals");
    if (fcntl(WIRE_GUEST_FD, F_SETFD, FD_CLOEXEC) < 0 || fcntl(WIRE_GUEST_FD, F_SETFL, O_NONBLOCK) < 0)
        give_up(STEP_INIT, "preparing the guest link");
    init.groups.root_fd = find_cgroup();
    int r = confine_open_proc();
    errno = -r;
    if (r < 0)
        give_up(STEP_INIT, "opening /proc");
    init.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    init.signal_fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    if (init.epoll_fd < 0 || init.signal_fd < 0)
        give_up(STEP_INIT, "making its event loop");
    watch(EPOLL_CTL_ADD, WIRE_GUEST_FD, EPOLLIN, WATCH_GUEST, 0);
    watch(EPOLL_CTL_ADD, init.signal_fd, EPOLLIN, WATCH_SIGNALS, 0);
}

/*
 * Signals and abstract sockets end at the sandbox's namespaces; where the kernel can, at a Landlock domain too. Once
 * and here, so that all commands share it: one each would keep them from signalling, and even seeing, one another.
 */
static uint32_t enter_domain(void)
{
    static const struct landlock_rules rules = {.scoped = LANDLOCK_SCOPED_SIGNALS | LANDLOCK_SCOPED_SOCKETS};
    _cleanup_fd_ int fd = landlock_new(&rules);

    /* The answers of a kernel that has no Landlock, has it switched off, or has none with scopes. */
    if (fd == -ENOSYS || fd == -EOPNOTSUPP || fd == -EINVAL || fd == -E2BIG)
        return 0;
    int r = fd < 0 ? fd : landlock_enter(fd);
    errno = -r;
    if (r < 0)
        give_up(STEP_LANDLOCK, "scopes");
    return SCOPED;
}

/* With an argument it is in a domain already, which has these features. */
int main(int argc, char **argv)
{
    struct wire_message hello = {.type = WIRE_HELLO, .hello.channels_max = CHANNELS_MAX};

    set_up();
    uint64_t start_ns = clock_now_ns();
    hello.hello.features = (argc > 1 ? (uint32_t)(argv[1][0] - '0') & SCOPED : enter_domain()) |
                           (init.groups.root_fd >= 0 ? WIRE_HELLO_TREE_KILL : 0);
    hello.hello.landlock_ns = clock_now_ns() - start_ns;
    hello.hello.features |= terminal_is_there() ? WIRE_HELLO_TERMINAL : 0;
    if (link_send(WIRE_GUEST_FD, &hello, NULL, 0) < 0)
        _exit(2);
    groups_prepare(&init.groups);
    for (;;) {
        struct epoll_event events[EVENTS_AT_ONCE];
        int n = epoll_wait(init.epoll_fd, events, EVENTS_AT_ONCE, -1);
        if (n < 0 && errno != EINTR)
            _exit(2);
        for (int i = 0; i < n; i++)
            handle_event(&events[i]);
        settle_all();
    }
}
