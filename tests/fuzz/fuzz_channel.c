/*
 * What a client may send, against a channel of init's whose command is us: EXEC opens it, SIGNAL ends the
 * command. We write to its output pipes before each message, as much as the message says, and the byte at each
 * offset is known, so whatever the channel then sends is checked byte by byte.
 */
#include "base/cleanup.h"
#include "fuzz.h"
#include "init/channel.h"
#include "init/terminal.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <termios.h>

enum { PERIOD = 251, FEED_MAX = 1 << 16 };

static struct groups no_groups = {.root_fd = -1};

struct command {
    struct channel *channel;
    int out[CHANNEL_STREAMS]; /* its ends of the pipes */
    int in;
    uint64_t written[CHANNEL_STREAMS];
    uint64_t heard[CHANNEL_STREAMS];
};

/* The stream from offset on: pattern + offset % PERIOD. */
static uint8_t pattern[PERIOD + FEED_MAX];

static void prepare(void)
{
    if (pattern[1] != 0)
        return;
    (void)signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; i < sizeof pattern; i++)
        pattern[i] = (uint8_t)(i % PERIOD);
}

static void make_pipe(int *ret_read, int *ret_write)
{
    int ends[2];

    MUST(pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
    *ret_read = ends[0];
    *ret_write = ends[1];
}

/* Raw, so that its bytes stay as they are; the command has two descriptors of it. */
static void make_terminal(struct command *command, const struct wire_exec *exec, int *ret_master, int *ret_slave)
{
    struct termios raw;

    MUST(terminal_open(getuid(), exec->rows, exec->columns, ret_master, ret_slave) == 0);
    MUST(tcgetattr(*ret_slave, &raw) == 0);
    cfmakeraw(&raw);
    MUST(tcsetattr(*ret_slave, TCSANOW, &raw) == 0 && fcntl(*ret_slave, F_SETFL, O_NONBLOCK) == 0);
    command->out[0] = fcntl(*ret_slave, F_DUPFD_CLOEXEC, 0);
    command->in = fcntl(*ret_slave, F_DUPFD_CLOEXEC, 0);
}

static void open_channel(struct command *command, const struct wire_exec *exec)
{
    struct channel *channel = calloc(1, sizeof *channel);
    const uint64_t caps[CHANNEL_STREAMS] = {exec->stdout_cap, exec->stderr_cap};

    MUST(channel != NULL);
    channel->id = exec->channel;
    channel->collect = (exec->flags & WIRE_EXEC_COLLECT) != 0;
    channel->stdin_fd = -1;
    channel->slave_fd = -1;
    channel->has_terminal = (exec->flags & WIRE_EXEC_TTY) != 0;
    for (size_t i = 0; i < CHANNEL_STREAMS; i++) {
        int fd = -1;
        if (!channel->has_terminal)
            make_pipe(&fd, &command->out[i]);
        else if (i == 0)
            make_terminal(command, exec, &fd, &channel->slave_fd);
        output_init(&channel->outputs[i], fd, caps[i]);
    }
    if ((exec->flags & WIRE_EXEC_STDIN) != 0 && channel->has_terminal)
        channel->stdin_fd = channel->outputs[0].fd;
    else if ((exec->flags & WIRE_EXEC_STDIN) != 0)
        make_pipe(&command->in, &channel->stdin_fd);
    command->channel = channel;
}

static void close_channel(struct command *command)
{
    for (size_t i = 0; i < CHANNEL_STREAMS; i++)
        close_fd(&command->out[i]);
    close_fd(&command->in);
    if (command->channel != NULL)
        command->channel->state = CHANNEL_ENDED; /* there is no process to end */
    channel_free(command->channel);
}

static void feed(struct command *command, size_t stream, size_t length)
{
    ssize_t n = command->out[stream] >= 0
                    ? write(command->out[stream], pattern + command->written[stream] % PERIOD, length % (FEED_MAX + 1))
                    : 0;

    command->written[stream] += n > 0 ? (uint64_t)n : 0;
}

static void check_output(const struct output *output, uint64_t written)
{
    MUST(output->acked <= output->sent && output->sent <= output->stored && output->stored <= output->total);
    MUST(output->total <= written && output->stored - output->acked <= WIRE_WINDOW);
    MUST(output->cap == 0 ? output->stored == output->total : output->stored <= output->cap);
}

static void check_data(struct command *command, size_t stream, uint64_t offset, struct wire_bytes data)
{
    MUST(offset == command->heard[stream] && data.length <= WIRE_DATA_MAX);
    MUST(data.length == 0 || memcmp(data.data, pattern + offset % PERIOD, data.length) == 0);
    command->heard[stream] += data.length;
}

/* Not before what was asked for, and after it only if that was acknowledged before. */
static void hear_start(struct command *command, size_t stream, uint64_t offset)
{
    const struct output *output = &command->channel->outputs[stream];

    MUST(offset >= command->heard[stream] && offset <= output->stored);
    MUST(offset == command->heard[stream] || offset == output->acked);
    command->heard[stream] = offset;
}

static void hear(struct command *command, const struct wire_message *message)
{
    switch ((int)message->type) {
    case WIRE_RESUMED:
        MUST(message->resumed.taken <= message->resumed.stdin_offset);
        MUST(message->resumed.stdin_offset == command->channel->stdin_offset);
        MUST(message->resumed.stdin_offset - message->resumed.taken <= WIRE_WINDOW);
        hear_start(command, 0, message->resumed.stdout_offset);
        hear_start(command, 1, message->resumed.stderr_offset);
        break;
    case WIRE_TAKEN:
        MUST(message->taken.offset <= command->channel->stdin_offset);
        break;
    case WIRE_STDOUT:
        check_data(command, 0, message->stdout_data.offset, message->stdout_data.data);
        break;
    case WIRE_STDERR:
        check_data(command, 1, message->stderr_data.offset, message->stderr_data.data);
        break;
    case WIRE_EXIT:
        check_data(command, 0, message->exit.stdout_offset, message->exit.stdout_tail);
        check_data(command, 1, message->exit.stderr_offset, message->exit.stderr_tail);
        break;
    default:
        abort(); /* a channel has nothing else to say */
    }
}

/* Everything there is to say, as often as init would. */
static void speak(struct command *command)
{
    static uint8_t frame[WIRE_FRAME_MAX];
    struct wire_message message;

    while (channel_next_message(command->channel, &message)) {
        MUST(wire_encode(&message, frame, sizeof frame) > 0);
        MUST(wire_permits(message.type, WIRE_BY_GUEST, WIRE_IN_RUNNING, 0));
        hear(command, &message);
        channel_sent(command->channel, &message);
    }
    for (size_t i = 0; i < CHANNEL_STREAMS; i++)
        check_output(&command->channel->outputs[i], command->written[i]);
    MUST(command->channel->stdin_rest_length <= WIRE_WINDOW);
    MUST(command->channel->stdin_fd < 0 ||
         command->channel->stdin_taken + command->channel->stdin_rest_length == command->channel->stdin_offset);
}

static int resume(struct command *command, const struct wire_resume *resume)
{
    int r = channel_resume(command->channel, resume);

    command->heard[0] = resume->stdout_offset;
    command->heard[1] = resume->stderr_offset;
    return r;
}

static int acknowledge(struct channel *channel, const struct wire_ack *ack)
{
    int r = output_ack(&channel->outputs[0], ack->stdout_offset);

    return r < 0 ? r : output_ack(&channel->outputs[1], ack->stderr_offset);
}

/* The command's turn: RESIZE stands for it. */
static void read_input(const struct command *command)
{
    static uint8_t nowhere[FEED_MAX];

    if (command->in >= 0)
        ignore_result(read(command->in, nowhere, sizeof nowhere));
}

static void end_command(struct command *command)
{
    for (size_t i = 0; i < CHANNEL_STREAMS; i++)
        close_fd(&command->out[i]);
    if (command->channel->state == CHANNEL_RUNNING)
        command->channel->state = CHANNEL_DRAINING;
    if (command->channel->has_terminal)
        close_fd(&command->in);
    close_fd(&command->channel->slave_fd);
}

/* Nothing can be left of it then. A command that runs was ended before, or there would be a process to kill. */
static int release(struct command *command)
{
    end_command(command);
    channel_release(command->channel, &no_groups);
    MUST(channel_is_over(command->channel));
    return 1;
}

/* As init.c does it, but for signals: there is nobody to send them to. 1 when the channel is over. */
static int handle(struct command *command, const struct wire_message *message)
{
    struct channel *channel = command->channel;

    switch ((int)message->type) {
    case WIRE_STDIN:
        return channel_write(channel, &message->stdin_data);
    case WIRE_ACK:
        return acknowledge(channel, &message->ack);
    case WIRE_RESUME:
        return resume(command, &message->resume);
    case WIRE_CLOSE:
        channel_close_stream(channel, message->close.stream);
        return 0;
    case WIRE_RESIZE:
        channel_resize(channel, message->resize.rows, message->resize.columns);
        read_input(command);
        return 0;
    case WIRE_SIGNAL:
        end_command(command);
        return 0;
    case WIRE_RELEASE:
        return release(command);
    default:
        return 0;
    }
}

static void take_turn(struct command *command, const struct wire_message *message)
{
    uint64_t amounts = message->ack.channel; /* each of them starts with this number */

    feed(command, 0, (size_t)(amounts & 0xffffffff));
    feed(command, 1, (size_t)(amounts >> 32));
    channel_drain(command->channel);
    speak(command);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct command command = {.out = {-1, -1}, .in = -1};
    struct wire_message message;
    int length;

    prepare();
    while ((length = wire_frame_length(data, size)) > 0 && (size_t)length <= size) {
        if (wire_decode(data, (size_t)length, &message) < 0 ||
            !wire_permits(message.type, WIRE_BY_CLIENT, WIRE_IN_RUNNING, 0))
            break;
        data += length;
        size -= (size_t)length;
        if (command.channel == NULL && message.type == WIRE_EXEC)
            open_channel(&command, &message.exec);
        if (command.channel == NULL)
            continue;
        take_turn(&command, &message);
        if (handle(&command, &message) != 0)
            break; /* below 0 init would end itself here */
        channel_drain(command.channel);
        if (command.channel->stdin_fd >= 0)
            channel_flush_stdin(command.channel);
        speak(&command);
    }
    close_channel(&command);
    return 0;
}
