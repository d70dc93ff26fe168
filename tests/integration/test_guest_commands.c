/*
 * test_guest_commands: hutch-init on the guest link, without a sandbox around it: commands from EXEC to RELEASE,
 * signals, what they leave behind, and what only a broken or hostile client sends. Every case has an init of its own.
 *
 *     test_guest_commands HUTCH-INIT PAYLOAD
 */
#include "guest.h"

#include "base/cleanup.h"
#include "base/fd.h"
#include "wire/landlock.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { CHANNELS = 256, FAR = 1 << 30 };

/* What this kernel should give an init. */
static uint32_t scopes(void)
{
    return landlock_version() >= LANDLOCK_VERSION_OF_SCOPES ? WIRE_HELLO_SCOPED_SIGNALS | WIRE_HELLO_SCOPED_SOCKETS : 0;
}

static void says_hello(struct guest *guest)
{
    struct guest other;

    CHECK(guest->message.hello.channels_max == CHANNELS);
    CHECK(guest->message.hello.features == (WIRE_HELLO_TREE_KILL | WIRE_HELLO_TERMINAL | scopes()));
    CHECK(guest_start(&other, false) && other.message.hello.features == (WIRE_HELLO_TERMINAL | scopes()));
    guest_end(&other);
}

/* This init has a pid namespace, but no network namespace: what keeps its commands off our socket is its domain. */
static void keeps_to_its_domain(struct guest *guest)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "\0hutch-test-domain"};
    _cleanup_fd_ int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct guest_heard heard = {0};
    char expected[32];

    (void)snprintf(expected, sizeof expected, "connect %d\n", scopes() != 0 ? EPERM : 0);
    CHECK(bind(listener, (struct sockaddr *)&address, sizeof address) == 0 && listen(listener, 1) == 0);
    guest_exec(guest, 1, WIRE_EXEC_COLLECT, 0, WORDS("abstract", "hutch-test-domain"));
    CHECK(guest_expect(guest, WIRE_EXIT) && guest->message.exit.stdout_tail.length == strlen(expected) &&
          memcmp(guest->message.exit.stdout_tail.data, expected, strlen(expected)) == 0);

    /* Its commands share it: one may signal the other. */
    guest_exec(guest, 2, 0, 0, WORDS("sleep", "60"));
    CHECK(guest_expect(guest, WIRE_STDOUT) && guest_hear(guest, 2, &heard));
    guest_exec(guest, 3, WIRE_EXEC_COLLECT, 0, WORDS("signal", "3", "15"));
    for (int ends = 0; ends < 2 && CHECK(guest_expect(guest, WIRE_EXIT)); ends++) {
        const struct wire_exit *exit = &guest->message.exit;
        CHECK(exit->channel == 2 ? exit->kind == WIRE_EXIT_SIGNAL && exit->value == SIGTERM : exit->channel == 3);
    }
}

static void executes_once(struct guest *guest)
{
    guest_exec(guest, 7, WIRE_EXEC_COLLECT, 0, WORDS("exit", "5"));
    guest_exec(guest, 7, WIRE_EXEC_COLLECT, 0, WORDS("exit", "6"));
    CHECK(guest_expect(guest, WIRE_EXIT) && guest->message.exit.value == 5);
    guest_exec(guest, 7, WIRE_EXEC_COLLECT, 0, WORDS("exit", "6"));
    CHECK(guest_is_silent(guest));
    guest_release(guest, 7);
    guest_exec(guest, 7, WIRE_EXEC_COLLECT, 0, WORDS("exit", "6"));
    CHECK(guest_expect(guest, WIRE_EXIT) && guest->message.exit.value == 6);
}

static void runs_many_at_once(struct guest *guest)
{
    bool seen[CHANNELS + 1] = {false};

    for (uint64_t channel = 1; channel <= CHANNELS; channel++)
        guest_exec(guest, channel, WIRE_EXEC_COLLECT, 0, WORDS("sleep", "60"));
    guest_exec(guest, CHANNELS + 1, WIRE_EXEC_COLLECT, 0, WORDS("exit", "0"));
    CHECK(guest_expect(guest, WIRE_EXIT) && guest->message.exit.channel == CHANNELS + 1);
    CHECK(guest->message.exit.kind == WIRE_EXIT_NOT_STARTED && guest->message.exit.value == EAGAIN);
    for (uint64_t channel = 1; channel <= CHANNELS; channel++)
        guest_signal(guest, channel, SIGKILL, WIRE_SCOPE_TREE);
    for (int i = 0; i < CHANNELS && CHECK(guest_expect(guest, WIRE_EXIT)); i++) {
        uint64_t channel = guest->message.exit.channel;
        if (!CHECK(channel >= 1 && channel <= CHANNELS && !seen[channel]))
            return;
        seen[channel] = true;
        CHECK(guest->message.exit.kind == WIRE_EXIT_SIGNAL && guest->message.exit.value == SIGKILL);
        guest_release(guest, channel);
    }
    CHECK(guest_is_alive(guest, FAR));
}

/* Wait for `count` lines of a family, as "name number;" in one text. */
static bool hear_lines(struct guest *guest, int count, char *text, size_t size)
{
    size_t length = strlen(text);

    while (count > 0) {
        if (!guest_expect(guest, WIRE_STDOUT))
            return false;
        struct wire_bytes data = guest->message.stdout_data.data;
        for (uint32_t i = 0; i < data.length && length + 1 < size; i++) {
            text[length++] = data.data[i] == '\n' ? ';' : (char)data.data[i];
            count -= data.data[i] == '\n';
        }
        text[length] = '\0';
        guest_ack(guest, 1, guest->message.stdout_data.offset + data.length, 0);
    }
    return count == 0;
}

static int times(const char *text, const char *part)
{
    int count = 0;

    for (const char *at = text; (at = strstr(at, part)) != NULL; at++)
        count++;
    return count;
}

static void signals_scopes(struct guest *guest)
{
    char text[1024] = "";

    guest_exec(guest, 1, 0, 0, WORDS("family"));
    CHECK(hear_lines(guest, 3, text, sizeof text) && times(text, " ready;") == 3);
    text[0] = '\0';
    guest_signal(guest, 1, SIGUSR1, WIRE_SCOPE_PROCESS);
    CHECK(hear_lines(guest, 1, text, sizeof text));
    guest_signal(guest, 1, SIGUSR2, WIRE_SCOPE_GROUP);
    CHECK(hear_lines(guest, 2, text, sizeof text));
    guest_signal(guest, 1, SIGWINCH, WIRE_SCOPE_TREE);
    CHECK(hear_lines(guest, 3, text, sizeof text));
    CHECK(times(text, "main 10;") == 1 && times(text, "main 12;") == 1 && times(text, "main 28;") == 1);
    CHECK(times(text, "group 12;") == 1 && times(text, "group 28;") == 1 && times(text, "session 28;") == 1);
    CHECK(times(text, ";") == 6);
    for (uint32_t number = 0; number <= 70; number += 65)
        guest_signal(guest, 1, number, WIRE_SCOPE_TREE); /* there is no such signal */
    guest_signal(guest, 1, SIGKILL, (enum wire_scope)9); /* nor such a scope */
    guest_signal(guest, 99, SIGKILL, WIRE_SCOPE_TREE);   /* nor such a channel */
    CHECK(guest_is_silent(guest));
    guest_signal(guest, 1, SIGKILL, WIRE_SCOPE_TREE);
    CHECK(guest_expect(guest, WIRE_EXIT) && guest->message.exit.kind == WIRE_EXIT_SIGNAL);
    CHECK(guest->message.exit.value == SIGKILL);
}

/* The end of the command is the end of its tree: no daemon holds EXIT up. */
static void ends_daemons(struct guest *guest)
{
    struct guest_heard heard = {0};

    guest_exec(guest, 1, 0, 0, WORDS("daemon"));
    CHECK(guest_hear_all(guest, 1, &heard) && guest_ended_with(&heard, WIRE_EXIT_CODE, 0));
    CHECK(heard.exit.stdout_total == 6);
}

/* A client that gives up on its commands does not use up what they took. */
static void releases_running(struct guest *guest)
{
    for (uint64_t channel = 1; channel <= 300 && !guest_case_failed(); channel++) {
        guest_exec(guest, channel, 0, 0, WORDS("daemon", "stay"));
        CHECK(guest_expect(guest, WIRE_STDOUT) && guest->message.stdout_data.channel == channel);
        guest_release(guest, channel);
    }
    CHECK(guest_is_alive(guest, FAR));
    for (int waited_ms = 0; waited_ms < 1000 && guest_cgroups(guest) > 0; waited_ms += 2)
        (void)usleep(2000);
    if (!CHECK(guest_cgroups(guest) == 0))
        printf("# %zu cgroups are left\n", guest_cgroups(guest));
}

/* EXIT is the last word: by then the tree is gone, and nothing is left in its cgroup. */
static void cleans_up(struct guest *guest)
{
    char path[64];
    char children[4096];

    for (uint64_t channel = 1; channel <= 50 && !guest_case_failed(); channel++) {
        struct guest_heard heard = {0};
        guest_exec(guest, channel, 0, 0, WORDS("daemon"));
        CHECK(guest_hear_all(guest, channel, &heard));
        CHECK(guest_cgroups(guest) == 0);
        guest_release(guest, channel);
    }
    CHECK(guest_is_alive(guest, FAR));
    (void)snprintf(path, sizeof path, "/proc/%d/task/%d/children", guest->pid, guest->pid);
    CHECK(fd_read_file(AT_FDCWD, path, children, sizeof children) == 0);
}

/* Where there is no cgroup the process group is the tree. */
static void works_without_cgroups(struct guest *unused)
{
    struct guest guest;
    struct guest_heard heard = {0};
    char text[256] = "";

    (void)unused;
    CHECK(guest_start(&guest, false));
    guest_exec(&guest, 1, 0, 0, WORDS("family"));
    CHECK(hear_lines(&guest, 3, text, sizeof text) && times(text, " ready;") == 3);
    guest_signal(&guest, 1, SIGKILL, WIRE_SCOPE_TREE);
    CHECK(guest_expect(&guest, WIRE_EXIT) && guest.message.exit.value == SIGKILL);
    guest_exec(&guest, 2, 0, 0, WORDS("daemon"));
    CHECK(guest_hear_all(&guest, 2, &heard) && guest_ended_with(&heard, WIRE_EXIT_CODE, 0));
    CHECK(guest_is_alive(&guest, 3));
    guest_end(&guest);
}

static void gathers_arguments(struct guest *guest)
{
    static uint8_t part[48000];
    char first[4096];
    int length = snprintf(first, sizeof first, "%s%carguments%c", guest_payload(), 0, 0);

    memset(part, 'x', sizeof part);
    part[sizeof part - 1] = '\0';
    for (uint64_t channel = 1; channel <= 2; channel++) {
        uint32_t parts = channel == 1 ? 20 : 25; /* a megabyte is all there may be */
        struct wire_message args = {.type = WIRE_ARGS, .args = {.channel = channel}};
        args.args.strings = (struct wire_bytes){(const uint8_t *)first, (uint32_t)length};
        guest_send(guest, &args);
        args.args.strings = (struct wire_bytes){part, sizeof part};
        for (uint32_t i = 0; i + 1 < parts; i++)
            guest_send(guest, &args);
        struct wire_message exec = {.type = WIRE_EXEC,
                                    .exec = {.channel = channel,
                                             .flags = WIRE_EXEC_COLLECT,
                                             .filter = WIRE_FILTER_TIGHT,
                                             .argc = 2 + parts,
                                             .strings = {part, sizeof part}}};
        guest_send(guest, &exec);
        CHECK(guest_expect(guest, WIRE_EXIT) && guest->message.exit.channel == channel);
        const struct wire_exit *exit = &guest->message.exit;
        if (channel == 1)
            CHECK(exit->kind == WIRE_EXIT_CODE && exit->stdout_tail.length == 10 &&
                  memcmp(exit->stdout_tail.data, "20 959980\n", 10) == 0);
        else
            CHECK(exit->kind == WIRE_EXIT_NOT_STARTED && exit->value == E2BIG);
    }
    CHECK(guest_is_alive(guest, 3));
}

static void refuses_what_can_not_start(struct guest *guest)
{
    static const struct {
        const char *command;
        const char *folder;
        uint32_t argc;
        uint32_t flags;
        uint8_t filter;
        uint32_t error;
    } rows[] = {
        {"/no/such/command", "/", 1, 0, WIRE_FILTER_STANDARD, ENOENT},
        {"no-such-command", "/", 1, 0, WIRE_FILTER_STANDARD, ENOENT},
        {"/etc/passwd", "/", 1, 0, WIRE_FILTER_STANDARD, EACCES},
        {"/etc/passwd/x", "/", 1, 0, WIRE_FILTER_STANDARD, ENOTDIR},
        {"/usr/bin/true", "/no/such/folder", 1, 0, WIRE_FILTER_STANDARD, ENOENT},
        {"/usr/bin/true", "/", 0, 0, WIRE_FILTER_STANDARD, EINVAL},
        {"/usr/bin/true", "/", 2, 0, WIRE_FILTER_STANDARD, EINVAL},
        {"/usr/bin/true", "/", UINT32_MAX, 0, WIRE_FILTER_STANDARD, EINVAL},
        {"no-such-command", "/", 1, WIRE_EXEC_TTY, WIRE_FILTER_STANDARD, ENOENT},
        {"/usr/bin/true", "/", 1, 0, 7, EINVAL},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct wire_message message = {.type = WIRE_EXEC,
                                       .exec = {.channel = i + 1,
                                                .flags = rows[i].flags | WIRE_EXEC_COLLECT,
                                                .filter = rows[i].filter,
                                                .folder = wire_str(rows[i].folder),
                                                .argc = rows[i].argc}};
        message.exec.strings.data = (const uint8_t *)rows[i].command;
        message.exec.strings.length = (uint32_t)strlen(rows[i].command) + 1;
        guest_send(guest, &message);
        CHECK(guest_expect(guest, WIRE_EXIT) && guest->message.exit.channel == i + 1);
        CHECK(guest->message.exit.kind == WIRE_EXIT_NOT_STARTED && guest->message.exit.value == rows[i].error);
        guest_release(guest, i + 1);
    }
    guest_send(guest, &(struct wire_message){.type = WIRE_DIAL, .dial = {.channel = 50, .port = 80}});
    CHECK(guest_expect(guest, WIRE_EXIT) && guest->message.exit.value == ENOSYS);
    CHECK(guest_is_alive(guest, 51));
}

static void ignores_unknown_channels(struct guest *guest)
{
    guest_ack(guest, 5, FAR, FAR);
    guest_resume(guest, 5, FAR, FAR);
    guest_release(guest, 5);
    guest_stdin(guest, 5, 7, "x", 1, true);
    guest_send(guest, &(struct wire_message){.type = WIRE_CLOSE, .close = {5, 1}});
    guest_send(guest, &(struct wire_message){.type = WIRE_RESIZE, .resize = {5, 24, 80}});
    CHECK(guest_is_alive(guest, 5));
}

/* What only a broken or hostile client sends: each ends init, and with it the sandbox. */
static void ack_too_far(const struct guest *guest)
{
    guest_ack(guest, 1, 7, 0);
}

static void resume_too_far(const struct guest *guest)
{
    guest_resume(guest, 1, 0, 1);
}

static void input_with_a_gap(const struct guest *guest)
{
    guest_stdin(guest, 1, 1, "x", 1, false);
}

static void input_after_its_end(const struct guest *guest)
{
    static const uint8_t bytes[32768];

    for (uint64_t sent = 0; sent < WIRE_WINDOW; sent += sizeof bytes)
        guest_stdin(guest, 1, sent, bytes, sizeof bytes, sent + sizeof bytes == WIRE_WINDOW);
    guest_stdin(guest, 1, WIRE_WINDOW, "x", 1, false);
}

static void guests_own_message(const struct guest *guest)
{
    guest_send(guest, &(struct wire_message){.type = WIRE_HELLO});
}

static void keepers_message(const struct guest *guest)
{
    guest_send(guest, &(struct wire_message){.type = WIRE_GONE});
}

static void half_a_header(const struct guest *guest)
{
    guest_send_raw(guest, "\5\0\0\0", 4);
}

static void unknown_type(const struct guest *guest)
{
    guest_send_raw(guest, "\10\0\0\0\1\377\0\0", 8);
}

static void send_changed(const struct guest *guest, size_t at, uint8_t by, size_t more)
{
    uint8_t frame[256];
    int length = wire_encode(&(struct wire_message){.type = WIRE_RELEASE, .release = {99}}, frame, sizeof frame - more);

    frame[at] = (uint8_t)(frame[at] + by);
    guest_send_raw(guest, frame, (size_t)length + more);
}

static void another_version(const struct guest *guest)
{
    send_changed(guest, 4, 1, 0);
}

static void wrong_length(const struct guest *guest)
{
    send_changed(guest, 0, 1, 0);
}

static void byte_too_many(const struct guest *guest)
{
    send_changed(guest, 0, 0, 1);
}

static void reserved_bits(const struct guest *guest)
{
    send_changed(guest, 6, 1, 0);
}

static void a_descriptor(const struct guest *guest)
{
    const struct wire_message message = {.type = WIRE_RELEASE, .release = {99}};

    ignore_result(link_send(guest->fd, &message, (const int[]){0}, 1));
}

static void oversized(const struct guest *guest)
{
    static uint8_t frame[WIRE_FRAME_MAX + 8];

    guest_send_raw(guest, frame, sizeof frame);
}

static void ends_hostile_clients(struct guest *unused)
{
    static const struct {
        const char *name;
        void (*send)(const struct guest *guest);
    } rows[] = {
        {"an acknowledgement of what was never sent", ack_too_far},
        {"a resume beyond the end", resume_too_far},
        {"input with a gap", input_with_a_gap},
        {"input after its end", input_after_its_end},
        {"a message of init's own", guests_own_message},
        {"a message of the keeper's", keepers_message},
        {"half a header", half_a_header},
        {"an unknown type", unknown_type},
        {"another version", another_version},
        {"a wrong length", wrong_length},
        {"a byte too many", byte_too_many},
        {"reserved bits", reserved_bits},
        {"a descriptor", a_descriptor},
        {"a frame over the maximum", oversized},
    };

    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct guest guest;
        CHECK(guest_start(&guest, false));
        guest_exec(&guest, 1, WIRE_EXEC_STDIN, 0, WORDS("sleep", "60"));
        CHECK(guest_expect(&guest, WIRE_STDOUT));
        rows[i].send(&guest);
        if (!CHECK(guest_wait(&guest) == 3))
            printf("# after %s\n", rows[i].name);
        guest_end(&guest);
    }
}

static void ends_with_the_link(struct guest *guest)
{
    guest_exec(guest, 1, 0, 0, WORDS("daemon", "stay"));
    CHECK(guest_expect(guest, WIRE_STDOUT));
    close_fd(&guest->fd);
    CHECK(guest_wait(guest) == 0);
}

static const struct guest_case cases[] = {
    {"init says HELLO: how many channels, whether it can kill trees, and the scopes it has", says_hello},
    {"commands share one Landlock domain and reach no abstract socket outside of it", keeps_to_its_domain},
    {"EXEC is idempotent by channel, until RELEASE", executes_once},
    {"256 commands at once, the next is refused", runs_many_at_once},
    {"SIGNAL to the process, its group, its tree", signals_scopes},
    {"a daemon ends with its command", ends_daemons},
    {"RELEASE of a running command frees everything", releases_running},
    {"ended commands leave neither zombies nor cgroups", cleans_up},
    {"without cgroups a tree is a process group", works_without_cgroups},
    {"arguments over many frames, and too many of them", gathers_arguments},
    {"what can't be started says why", refuses_what_can_not_start},
    {"messages for channels that are not there are ignored", ignores_unknown_channels},
    {"a hostile frame ends init", ends_hostile_clients},
    {"the end of the link ends init and all commands", ends_with_the_link},
};

int main(int argc, char **argv)
{
    return guest_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
