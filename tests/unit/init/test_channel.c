/*
 * Channels with real commands, outside any sandbox and without cgroups (see test_command.c). `struct client` does what
 * init.c and a client do together: it reaps, drains, reads every message and acknowledges, if it is told to.
 */
#include "base/buf.h"
#include "init/channel.h"
#include "init/confine.h"
#include "init/terminal.h"
#include "test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

enum { ID = 77, MUCH = 16 << 20 };

static struct groups no_groups = {.root_fd = -1};

struct client {
    struct channel *channel;
    bool acknowledges;
    bool has_exit;
    size_t messages;
    struct buf streams[CHANNEL_STREAMS];
    struct wire_taken taken;
    struct wire_exit exit;
};

static struct client start(const char *script, uint32_t flags, uint64_t cap)
{
    char strings[512];
    int length = snprintf(strings, sizeof strings, "sh%c-c%c%s%cPATH=/usr/bin:/bin", 0, 0, script, 0);
    struct wire_exec exec = {.channel = ID,
                             .flags = flags,
                             .filter = WIRE_FILTER_STANDARD,
                             .uid = 1234,
                             .gid = 1234,
                             .stdout_cap = cap,
                             .stderr_cap = cap,
                             .argc = 3,
                             .envc = 1};
    struct client client = {.channel = channel_new(&exec, strings, (size_t)length + 1, &no_groups),
                            .acknowledges = true,
                            .streams = {buf_init(MUCH), buf_init(MUCH)}};

    test_reclaim_stack();
    assert_non_null(client.channel);
    assert_int_equal(client.channel->id, ID);
    return client;
}

/* As after RELEASE: it is ended, if it has to be, and gone once it is reaped. */
static void finish(struct client *client)
{
    struct channel *channel = client->channel;
    struct rusage usage;
    int status;

    channel_release(channel, &no_groups);
    if (channel->state == CHANNEL_RUNNING) {
        assert_false(channel_is_over(channel));
        assert_int_equal(wait4(channel->pid, &status, 0, &usage), channel->pid);
        channel_reaped(channel, status, &usage, &no_groups);
    }
    assert_true(channel_is_over(channel));
    channel_free(channel);
    buf_release(&client->streams[0]);
    buf_release(&client->streams[1]);
}

/* Output comes in order, without gaps, within the window. */
static void take(struct client *client, size_t stream, uint64_t channel, uint64_t offset, struct wire_bytes data)
{
    struct buf *buf = &client->streams[stream];

    assert_int_equal(channel, ID);
    assert_int_equal(offset, buf->length);
    assert_int_equal(buf_append(buf, data.data, data.length), 0);
    assert_true(buf->length - client->channel->outputs[stream].acked <= WIRE_WINDOW);
}

static void hear(struct client *client, const struct wire_message *message)
{
    client->messages++;
    switch ((int)message->type) {
    case WIRE_STDOUT:
        take(client, 0, message->stdout_data.channel, message->stdout_data.offset, message->stdout_data.data);
        break;
    case WIRE_STDERR:
        take(client, 1, message->stderr_data.channel, message->stderr_data.offset, message->stderr_data.data);
        break;
    case WIRE_TAKEN:
        client->taken = message->taken;
        break;
    case WIRE_EXIT:
        client->exit = message->exit;
        client->has_exit = true;
        take(client, 0, ID, message->exit.stdout_offset, message->exit.stdout_tail);
        take(client, 1, ID, message->exit.stderr_offset, message->exit.stderr_tail);
        break;
    default:
        fail_msg("%s", wire_name(message->type));
    }
}

static void acknowledge(struct client *client)
{
    for (size_t i = 0; i < CHANNEL_STREAMS; i++)
        assert_int_equal(output_ack(&client->channel->outputs[i], client->channel->outputs[i].sent), 0);
    channel_drain(client->channel);
}

/* One round of init's loop. */
static void turn(struct client *client)
{
    static uint8_t frame[WIRE_FRAME_MAX];
    struct channel *channel = client->channel;
    struct wire_message message;
    struct rusage usage;
    int status;

    if (channel->state == CHANNEL_RUNNING && wait4(channel->pid, &status, WNOHANG, &usage) == channel->pid)
        channel_reaped(channel, status, &usage, &no_groups);
    channel_settle(channel, &no_groups);
    channel_drain(channel);
    if (channel->stdin_fd >= 0)
        channel_flush_stdin(channel);
    while (channel_next_message(channel, &message)) {
        assert_true(wire_encode(&message, frame, sizeof frame) > 0);
        hear(client, &message);
        channel_sent(channel, &message);
    }
    if (client->acknowledges)
        acknowledge(client);
    (void)nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
}

static void run_to_end(struct client *client)
{
    while (!client->has_exit)
        turn(client);
}

static void assert_stream(const struct client *client, size_t stream, const char *expected)
{
    assert_int_equal(client->streams[stream].length, strlen(expected));
    if (expected[0] != '\0')
        assert_memory_equal(client->streams[stream].data, expected, strlen(expected));
}

/* A short command that is collected answers with a single message. */
TEST(test_collect)
{
    struct client client = start("echo out; echo err >&2; exit 3", WIRE_EXEC_COLLECT, 1000);

    run_to_end(&client);
    assert_int_equal(client.messages, 1);
    assert_stream(&client, 0, "out\n");
    assert_stream(&client, 1, "err\n");
    assert_int_equal(client.exit.channel, ID);
    assert_int_equal(client.exit.kind, WIRE_EXIT_CODE);
    assert_int_equal(client.exit.value, 3);
    assert_int_equal(client.exit.stdout_total, 4);
    assert_int_equal(client.exit.stderr_total, 4);
    assert_true(client.exit.duration_ns > 0 && client.exit.peak_bytes > 0 && client.exit.disk_free_bytes > 0);
    finish(&client);
}

/* One that is not collected is heard of while it runs. */
TEST(test_stream)
{
    struct client client = start("echo first; read line; echo $line", WIRE_EXEC_STDIN, 0);
    struct wire_stdin_data line = {.data = {(const uint8_t *)"second\n", 7}, .end = 1};

    while (client.streams[0].length == 0)
        turn(&client);
    assert_stream(&client, 0, "first\n");
    assert_false(client.has_exit);
    assert_int_equal(channel_write(client.channel, &line), 0);
    run_to_end(&client);
    assert_stream(&client, 0, "first\nsecond\n");
    finish(&client);
}

static void assert_sequence(const struct buf *buf, size_t last)
{
    size_t at = 0;

    for (size_t i = 1; i <= last; i++) {
        char line[24];
        size_t length = (size_t)snprintf(line, sizeof line, "%zu\n", i);
        assert_true(at + length <= buf->length);
        assert_memory_equal(buf->data + at, line, length);
        at += length;
    }
    assert_int_equal(at, buf->length);
}

TEST(test_much_output)
{
    static const uint32_t flags[] = {0, WIRE_EXEC_COLLECT};

    for (size_t i = 0; i < COUNT(flags); i++) {
        struct client client = start("seq 100000; seq 50000 >&2", flags[i], 0);
        run_to_end(&client);
        assert_sequence(&client.streams[0], 100000);
        assert_sequence(&client.streams[1], 50000);
        assert_int_equal(client.exit.stdout_total, client.streams[0].length);
        finish(&client);
    }
}

/* Who does not acknowledge gets a window's worth, and the command waits. */
TEST(test_window)
{
    struct client client = start("seq 100000", 0, 0);

    client.acknowledges = false;
    while (client.streams[0].length < WIRE_WINDOW)
        turn(&client);
    for (size_t i = 0; i < 100; i++)
        turn(&client);
    assert_int_equal(client.streams[0].length, WIRE_WINDOW);
    assert_false(client.has_exit);
    client.acknowledges = true;
    run_to_end(&client);
    assert_sequence(&client.streams[0], 100000);
    finish(&client);
}

TEST(test_cap)
{
    struct client client = start("seq 100000; echo x >&2", WIRE_EXEC_COLLECT, 100);

    client.acknowledges = false;
    run_to_end(&client);
    assert_int_equal(client.streams[0].length, 100);
    assert_int_equal(client.exit.stdout_total, 588895);
    assert_stream(&client, 1, "x\n");
    finish(&client);
}

TEST(test_much_input)
{
    static uint8_t data[WIRE_DATA_MAX];
    struct client client = start("cat", WIRE_EXEC_STDIN, 0);
    struct wire_stdin_data part = {0};

    while (!client.has_exit) {
        uint64_t room = WIRE_WINDOW - (part.offset - client.taken.offset);
        part.data.length = (uint32_t)(room < sizeof data ? room : sizeof data);
        for (size_t i = 0; i < part.data.length; i++)
            data[i] = (uint8_t)((part.offset + i) * 7 / 3);
        part.data.data = data;
        part.end = part.offset > 1000000;
        if (part.data.length > 0 && client.channel->stdin_fd >= 0 && !client.channel->stdin_end) {
            assert_int_equal(channel_write(client.channel, &part), 0);
            part.offset += part.data.length;
        }
        turn(&client);
    }
    assert_int_equal(client.streams[0].length, part.offset);
    for (size_t i = 0; i < part.offset; i++)
        assert_int_equal(client.streams[0].data[i], (uint8_t)(i * 7 / 3));
    finish(&client);
}

/* A command that reads nothing: its pipe takes 64 KiB, then the window is all there is. */
TEST(test_input_bounds)
{
    static const uint8_t zeros[WIRE_WINDOW];
    struct client client = start("sleep 1000", WIRE_EXEC_STDIN, 0);
    struct channel *channel = client.channel;
    struct wire_stdin_data data = {.offset = 1, .data = {zeros, 1}};

    assert_int_equal(channel_write(channel, &data), -EINVAL);
    data = (struct wire_stdin_data){.data = {zeros, WIRE_WINDOW + 1}};
    assert_int_equal(channel_write(channel, &data), -EINVAL);
    data.data.length = WIRE_WINDOW;
    assert_int_equal(channel_write(channel, &data), 0);
    assert_int_equal(channel->stdin_taken + channel->stdin_rest_length, WIRE_WINDOW);
    assert_true(channel->stdin_rest_length > 0);
    assert_int_equal(channel_write(channel, &data), -EINVAL); /* the same offset again */
    data.offset = WIRE_WINDOW;
    data.data.length = (uint32_t)channel->stdin_taken + 1;
    assert_int_equal(channel_write(channel, &data), -EINVAL);
    data.data.length--;
    data.end = 1;
    assert_int_equal(channel_write(channel, &data), 0);
    assert_int_equal(channel->stdin_rest_length, WIRE_WINDOW);
    data = (struct wire_stdin_data){.offset = channel->stdin_offset, .data = {zeros, 1}};
    assert_int_equal(channel_write(channel, &data), -EINVAL); /* after the end */
    finish(&client);
}

/* Too late is not wrong. */
TEST(test_input_closed)
{
    struct client client = start("exec 0<&-; echo closed; sleep 1000", WIRE_EXEC_STDIN, 0);
    struct wire_stdin_data data = {.data = {(const uint8_t *)"x", 1}};

    while (client.streams[0].length == 0)
        turn(&client);
    assert_int_equal(channel_write(client.channel, &data), 0);
    turn(&client);
    assert_int_equal(client.taken.closed, 1);
    data.offset = 4711;
    assert_int_equal(channel_write(client.channel, &data), 0);
    finish(&client);
}

TEST(test_signals)
{
    static const struct {
        uint32_t number;
        uint8_t scope;
        int result;
    } rows[] = {
        {0, WIRE_SCOPE_PROCESS, -EINVAL},
        {65, WIRE_SCOPE_PROCESS, -EINVAL},
        {UINT32_MAX, WIRE_SCOPE_GROUP, -EINVAL},
        {SIGTERM, 3, -EINVAL},
        {SIGTERM, 255, -EINVAL},
        {SIGTERM, WIRE_SCOPE_PROCESS, 0},
        {SIGUSR1, WIRE_SCOPE_GROUP, 0},
        {SIGKILL, WIRE_SCOPE_TREE, 0},
        {64, WIRE_SCOPE_PROCESS, 0},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct client client = start("exec sleep 1000", 0, 0);
        assert_int_equal(channel_signal(client.channel, rows[i].number, rows[i].scope, &no_groups), rows[i].result);
        if (rows[i].result == 0) {
            run_to_end(&client);
            assert_int_equal(client.exit.kind, WIRE_EXIT_SIGNAL);
            assert_int_equal(client.exit.value, rows[i].number);
            /* Its pid may be somebody else's by now. */
            assert_int_equal(channel_signal(client.channel, SIGKILL, WIRE_SCOPE_GROUP, &no_groups), 0);
        }
        finish(&client);
    }
}

TEST(test_not_started)
{
    struct wire_exec exec = {.channel = ID, .filter = WIRE_FILTER_STANDARD, .argc = 1};
    struct client client = {.channel = channel_new(&exec, "/missing", sizeof "/missing", &no_groups)};
    struct wire_stdin_data data = {.offset = 9};

    test_reclaim_stack();
    assert_non_null(client.channel);
    assert_int_equal(client.channel->state, CHANNEL_ENDED);
    assert_int_equal(channel_write(client.channel, &data), 0);
    run_to_end(&client);
    assert_int_equal(client.messages, 1);
    assert_int_equal(client.exit.kind, WIRE_EXIT_NOT_STARTED);
    assert_int_equal(client.exit.value, ENOENT);
    assert_int_equal(client.exit.failed, WIRE_FAILED_PROGRAM);
    finish(&client);
}

/* A client that comes back gets what it did not acknowledge, and the end, again. */
TEST(test_resume)
{
    struct client client = start("seq 20000", 0, 0);
    struct output *output = &client.channel->outputs[0];
    enum { FROM = 12345 };

    client.acknowledges = false;
    run_to_end(&client);
    assert_sequence(&client.streams[0], 20000);
    assert_int_equal(output_ack(output, FROM), 0);
    assert_int_equal(output_resume(output, FROM - 1), 0);
    assert_int_equal(output->sent, FROM);
    client.channel->exit_sent = false;
    client.streams[0].length = FROM;
    client.has_exit = false;
    run_to_end(&client);
    assert_sequence(&client.streams[0], 20000);
    finish(&client);
}

/* What a command leaves behind ends with it, and does not keep its streams open. */
TEST(test_left_behind)
{
    struct client client = start("sleep 1000 & echo done", 0, 0);
    pid_t group = client.channel->pid;

    run_to_end(&client);
    assert_stream(&client, 0, "done\n");
    assert_int_equal(client.exit.kind, WIRE_EXIT_CODE);
    assert_true(waitpid(-group, NULL, 0) > 0);
    assert_int_equal(kill(-group, 0), -1);
    finish(&client);
}

/* Whether it runs, waits for a reader or has ended, nothing is left of it. */
TEST(test_release)
{
    size_t open_before = test_open_fds();
    struct client running = start("sleep 1000", WIRE_EXEC_STDIN, 0);
    struct client waiting = start("seq 100000", 0, 0);
    struct client ended = start("echo done", 0, 0);

    waiting.acknowledges = false;
    while (waiting.streams[0].length < WIRE_WINDOW)
        turn(&waiting);
    run_to_end(&ended);
    assert_false(channel_is_over(ended.channel));
    finish(&running);
    finish(&waiting);
    finish(&ended);
    assert_int_equal(test_open_fds(), open_before);
    channel_free(NULL);
}

static void type(struct client *client, const char *text, bool end)
{
    struct wire_stdin_data data = {
        .offset = client->channel->stdin_offset, .end = end, .data = {(const uint8_t *)text, (uint32_t)strlen(text)}};

    assert_int_equal(channel_write(client->channel, &data), 0);
}

/* Both ways on one descriptor, everything on the first stream, the end typed, and a size that can change. */
TEST(test_terminal)
{
    struct client client =
        start("echo ready >&2; read line; echo got $line; stty size; cat", WIRE_EXEC_TTY | WIRE_EXEC_STDIN, 0);

    while (client.streams[0].length < strlen("ready\r\n"))
        turn(&client);
    assert_stream(&client, 0, "ready\r\n");
    channel_resize(client.channel, 12, 34);
    type(&client, "line\r", false);
    while (client.streams[0].length < strlen("ready\r\nline\r\ngot line\r\n12 34\r\n"))
        turn(&client);
    assert_stream(&client, 0, "ready\r\nline\r\ngot line\r\n12 34\r\n");
    type(&client, "half", true);
    run_to_end(&client);
    assert_stream(&client, 0, "ready\r\nline\r\ngot line\r\n12 34\r\nhalfhalf");
    assert_stream(&client, 1, "");
    assert_int_equal(client.exit.kind, WIRE_EXIT_CODE);
    assert_int_equal(client.channel->stdin_taken, 9);
    channel_resize(client.channel, 1, 1); /* too late is not wrong */
    finish(&client);
}

/* A paste that is larger than what the kernel and the window hold. */
TEST(test_terminal_input)
{
    struct client client = start("stty raw -echo; echo; cat >/dev/null", WIRE_EXEC_TTY | WIRE_EXEC_STDIN, 0);
    static uint8_t zeros[WIRE_DATA_MAX];
    struct wire_stdin_data part = {0};

    while (client.streams[0].length == 0)
        turn(&client);
    while (part.offset < 1000000) {
        uint64_t room = WIRE_WINDOW - (part.offset - client.taken.offset);
        part.data = (struct wire_bytes){zeros, (uint32_t)(room < sizeof zeros ? room : sizeof zeros)};
        assert_int_equal(channel_write(client.channel, &part), 0);
        part.offset += part.data.length;
        turn(&client);
    }
    while (client.taken.offset < part.offset)
        turn(&client);
    assert_false(client.has_exit);
    finish(&client);
}

/* Who goes away leaves a terminal that hangs up; what ends with it is told as ever. */
TEST(test_terminal_hang_up)
{
    struct client client = start("echo ready; exec sleep 1000", WIRE_EXEC_TTY | WIRE_EXEC_STDIN, 0);
    size_t open_before = test_open_fds();

    while (client.streams[0].length == 0)
        turn(&client);
    channel_close_stream(client.channel, WIRE_STREAM_STDERR); /* it has none */
    channel_close_stream(client.channel, 0);
    assert_int_equal(test_open_fds(), open_before);
    channel_close_stream(client.channel, WIRE_STREAM_STDOUT);
    assert_int_equal(test_open_fds(), open_before - 2);
    type(&client, "too late", false);
    run_to_end(&client);
    assert_int_equal(client.taken.closed, 1);
    assert_int_equal(client.exit.kind, WIRE_EXIT_SIGNAL);
    assert_int_equal(client.exit.value, SIGHUP);
    finish(&client);
}

/* It closes its terminal and opens it again: that is not the end. */
TEST(test_terminal_reopened)
{
    struct client client = start("exec <&- >&- 2>&-; sleep 0.1; echo again >/dev/tty", WIRE_EXEC_TTY, 0);

    run_to_end(&client);
    assert_stream(&client, 0, "again\r\n");
    finish(&client);
}

/* A signal to the group is one to the job in the foreground, not to the shell. */
TEST(test_terminal_signal)
{
    struct client client = start("set -m; sleep 1000; exit $?", WIRE_EXEC_TTY, 0);
    int master = client.channel->outputs[0].fd;
    pid_t shell = client.channel->pid;

    while (terminal_foreground(master) == shell || terminal_foreground(master) == 0)
        turn(&client);
    assert_int_equal(channel_signal(client.channel, SIGTERM, WIRE_SCOPE_GROUP, &no_groups), 0);
    run_to_end(&client);
    assert_int_equal(client.exit.kind, WIRE_EXIT_CODE);
    assert_int_equal(client.exit.value, 128 + SIGTERM);
    finish(&client);
}

static int set_up(void **state)
{
    (void)state;
    (void)signal(SIGPIPE, SIG_IGN);
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    (void)close(WIRE_PROC_FD);
    if (confine_open_proc() < 0)
        return -1;
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_collect),
        cmocka_unit_test(test_stream),
        cmocka_unit_test(test_much_output),
        cmocka_unit_test(test_window),
        cmocka_unit_test(test_cap),
        cmocka_unit_test(test_much_input),
        cmocka_unit_test(test_input_bounds),
        cmocka_unit_test(test_input_closed),
        cmocka_unit_test(test_signals),
        cmocka_unit_test(test_not_started),
        cmocka_unit_test(test_resume),
        cmocka_unit_test(test_left_behind),
        cmocka_unit_test(test_release),
        cmocka_unit_test(test_terminal),
        cmocka_unit_test(test_terminal_input),
        cmocka_unit_test(test_terminal_hang_up),
        cmocka_unit_test(test_terminal_reopened),
        cmocka_unit_test(test_terminal_signal),
    };
    return cmocka_run_group_tests_name("init/channel", tests, set_up, NULL);
}
