#include "init/channel.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "init/command.h"
#include "init/terminal.h"
#include "init/worker.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>

enum {
    TAIL_MAX = 30720,        /* output that fits into an EXIT frame, per stream */
    COLLECT_HOLD = TAIL_MAX, /* in collect mode nothing is sent before there is more than that */
    READS_AT_ONCE = 16,
};

/* Once the last process of the command has gone, the next command may have its cgroup. */
static void leave_group(struct channel *channel, struct groups *groups)
{
    if (!channel->group.is_there)
        return;
    if (group_is_empty(groups, &channel->group))
        groups_give_back(groups, &channel->group);
    else
        group_wait(groups, &channel->group);
}

static void not_started(struct channel *channel, int error, struct groups *groups)
{
    channel->exit_kind = WIRE_EXIT_NOT_STARTED;
    channel->exit_value = (uint32_t)error;
    channel->state = CHANNEL_ENDED;
    leave_group(channel, groups);
}

static int start_in_group(struct channel *channel, const struct wire_exec *exec, const char *strings, size_t length,
                          struct groups *groups, struct command_pipes *ret_pipes)
{
    _cleanup_fd_ int cgroup_fd = -1;

    if (groups->root_fd >= 0) {
        int r = groups_take(groups, &channel->group);
        if (r < 0)
            return r;
        cgroup_fd = group_open(groups, &channel->group);
        if (cgroup_fd < 0)
            return cgroup_fd;
    }
    return command_start(exec, strings, length, cgroup_fd, ret_pipes, &channel->pid, &channel->failed);
}

static void start(struct channel *channel, const struct wire_exec *exec, const char *strings, size_t length,
                  struct groups *groups)
{
    struct command_pipes pipes = {-1, -1, -1, -1};

    channel->start_ns = clock_now_ns();
    channel->failed = WIRE_FAILED_SETUP;
    int r = start_in_group(channel, exec, strings, length, groups, &pipes);
    output_init(&channel->outputs[0], pipes.stdout_fd, exec->stdout_cap);
    output_init(&channel->outputs[1], pipes.stderr_fd, exec->stderr_cap);
    channel->has_terminal = pipes.slave_fd >= 0;
    channel->slave_fd = pipes.slave_fd;
    channel->stdin_fd =
        channel->has_terminal && (exec->flags & WIRE_EXEC_STDIN) != 0 ? pipes.stdout_fd : pipes.stdin_fd;
    if (r < 0)
        not_started(channel, -r, groups);
}

struct channel *channel_new(const struct wire_exec *exec, const char *strings, size_t length, struct groups *groups)
{
    struct channel *channel = calloc(1, sizeof *channel);

    if (channel == NULL)
        return NULL;
    channel->id = exec->channel;
    channel->collect = (exec->flags & WIRE_EXEC_COLLECT) != 0;
    channel->group = GROUP_NONE;
    start(channel, exec, strings, length, groups);
    return channel;
}

struct channel *channel_new_file(const struct wire_file *file)
{
    struct channel *channel = calloc(1, sizeof *channel);
    int output = -1;

    if (channel == NULL)
        return NULL;
    channel->id = file->channel;
    channel->collect = file->operation != WIRE_FILE_WATCH;
    channel->is_alone = true;
    channel->failed = WIRE_FAILED_SETUP;
    channel->group = GROUP_NONE;
    channel->stdin_fd = -1;
    channel->slave_fd = -1;
    channel->start_ns = clock_now_ns();
    int r = worker_start(file, &channel->stdin_fd, &output, &channel->pid);
    output_init(&channel->outputs[0], output, 0);
    output_init(&channel->outputs[1], -1, 0);
    if (r < 0)
        not_started(channel, -r, NULL);
    return channel;
}

static void close_stdin(struct channel *channel)
{
    if (channel->has_terminal)
        channel->stdin_fd = -1;
    close_fd(&channel->stdin_fd);
    channel->stdin_watched = 0;
    channel->stdin_rest_length = 0;
    channel->taken_due = true;
}

static void end_output(struct channel *channel, size_t stream)
{
    if (channel->has_terminal && stream == 0)
        close_stdin(channel);
    close_fd(&channel->outputs[stream].fd);
    channel->outputs[stream].watched = 0;
}

void channel_free(struct channel *channel)
{
    if (channel == NULL)
        return;
    close_fd(&channel->group.events_fd);
    close_stdin(channel);
    output_release(&channel->outputs[0]);
    output_release(&channel->outputs[1]);
    close_fd(&channel->slave_fd);
    free(channel->stdin_rest);
    free(channel);
}

void channel_release(struct channel *channel, struct groups *groups)
{
    channel->released = true;
    if (channel->state == CHANNEL_RUNNING)
        ignore_result(channel_signal(channel, SIGKILL, WIRE_SCOPE_TREE, groups));
    /* Nobody will acknowledge any more: let go of the output. */
    end_output(channel, 0);
    end_output(channel, 1);
    channel_drain(channel);
}

bool channel_is_over(const struct channel *channel)
{
    return channel->released && channel->state == CHANNEL_ENDED && !channel->group.is_there;
}

/* All of it is written. Nobody can close a keyboard: the end is typed. */
static void end_stdin(struct channel *channel)
{
    if (!channel->has_terminal || terminal_type_end(channel->stdin_fd, channel->stdin_in_line))
        close_stdin(channel);
}

/* As much as the pipe takes: the count, or -1 when its reader has gone. */
static ssize_t write_some(struct channel *channel, const uint8_t *data, size_t length)
{
    ssize_t n = write(channel->stdin_fd, data, length);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        n = 0;
    if (n < 0) {
        close_stdin(channel);
        return -1;
    }
    channel->stdin_taken += (uint64_t)n;
    channel->taken_due = channel->taken_due || n > 0;
    return n;
}

static int keep_rest(struct channel *channel, const uint8_t *data, size_t length)
{
    if (channel->stdin_rest == NULL)
        channel->stdin_rest = malloc(WIRE_WINDOW);
    if (channel->stdin_rest == NULL)
        return -ENOMEM;
    memcpy(channel->stdin_rest + channel->stdin_rest_length, data, length);
    channel->stdin_rest_length += length;
    return 0;
}

int channel_write(struct channel *channel, const struct wire_stdin_data *data)
{
    const uint8_t *at = data->data.data;
    size_t length = data->data.length;

    /* Too late is not wrong: the command may have closed its input or ended while this was on its way. */
    if (channel->stdin_fd < 0)
        return 0;
    if (channel->stdin_end || data->offset != channel->stdin_offset ||
        length > WIRE_WINDOW - channel->stdin_rest_length)
        return -EINVAL;
    channel->stdin_offset += length;
    channel->stdin_end = data->end != 0;
    if (length > 0)
        channel->stdin_in_line = at[length - 1] != '\n' && at[length - 1] != '\r';
    if (channel->stdin_rest_length == 0 && length > 0) {
        ssize_t n = write_some(channel, at, length);
        if (n < 0)
            return 0;
        at += n;
        length -= (size_t)n;
    }
    int r = length > 0 ? keep_rest(channel, at, length) : 0;
    if (channel->stdin_end && channel->stdin_rest_length == 0)
        end_stdin(channel);
    return r;
}

int channel_resume(struct channel *channel, const struct wire_resume *resume)
{
    int r = output_resume(&channel->outputs[0], resume->stdout_offset);

    if (r == 0)
        r = output_resume(&channel->outputs[1], resume->stderr_offset);
    channel->exit_sent = false;
    channel->resumed_due = true;
    channel->resume_start = resume->start;
    return r;
}

void channel_flush_stdin(struct channel *channel)
{
    ssize_t n =
        channel->stdin_rest_length > 0 ? write_some(channel, channel->stdin_rest, channel->stdin_rest_length) : 0;

    if (n > 0) {
        channel->stdin_rest_length -= (size_t)n;
        memmove(channel->stdin_rest, channel->stdin_rest + n, channel->stdin_rest_length);
    }
    if (n >= 0 && channel->stdin_end && channel->stdin_rest_length == 0)
        end_stdin(channel);
}

/* Once the tree is gone nothing more can come: what is in the pipes now is all, even if somebody still holds one. */
void channel_drain(struct channel *channel)
{
    bool tree_gone = channel->state == CHANNEL_DRAINING && !channel->group.is_there;

    for (size_t i = 0; i < CHANNEL_STREAMS; i++) {
        struct output *output = &channel->outputs[i];
        /* Not for as long as there is something: the others would wait for a command that prints for ever. */
        for (int reads = 0; reads < READS_AT_ONCE && output->fd >= 0 && output_has_room(output); reads++) {
            int r = output_read(output);
            /* Without memory it stays in the pipe until there is some. */
            if (r == -ENOMEM || (r == -EAGAIN && !tree_gone))
                break;
            if (r <= 0)
                end_output(channel, i);
        }
    }
    if (tree_gone && channel->outputs[0].fd < 0 && channel->outputs[1].fd < 0)
        channel->state = CHANNEL_ENDED;
}

void channel_settle(struct channel *channel, struct groups *groups)
{
    if (channel->state == CHANNEL_RUNNING)
        return;
    leave_group(channel, groups);
    if (channel->state == CHANNEL_DRAINING)
        channel_drain(channel);
}

void channel_reaped(struct channel *channel, int wait_status, const struct rusage *usage, struct groups *groups)
{
    channel->duration_ns = clock_now_ns() - channel->start_ns;
    channel->usage = *usage;
    channel->exit_kind = WIFSIGNALED(wait_status) ? WIRE_EXIT_SIGNAL : WIRE_EXIT_CODE;
    channel->exit_value = (uint32_t)(WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : WEXITSTATUS(wait_status));
    channel->state = CHANNEL_DRAINING;
    close_stdin(channel);
    close_fd(&channel->slave_fd);
    leave_group(channel, groups);
    /* Whatever it left behind ends with it, and brings us to channel_settle(). */
    if (channel->group.is_there)
        ignore_result(channel_signal(channel, SIGKILL, WIRE_SCOPE_TREE, groups));
    else if (groups->root_fd < 0)
        (void)kill(-channel->pid, SIGKILL);
    channel_drain(channel);
}

int channel_signal(struct channel *channel, uint32_t signal_number, uint8_t scope, const struct groups *groups)
{
    if (signal_number == 0 || signal_number > 64 || scope > WIRE_SCOPE_TREE)
        return -EINVAL;
    if (channel->state == CHANNEL_ENDED)
        return 0;
    if (scope == WIRE_SCOPE_TREE && channel->group.is_there)
        return group_signal(groups, &channel->group, (int)signal_number);
    if (channel->state == CHANNEL_DRAINING)
        return 0; /* its pid may be somebody else's by now */
    /*
     * Without cgroups the process group is the nearest to a tree; a worker may not have made its own yet. With a
     * terminal it is the one that Ctrl-C is for.
     */
    pid_t group = scope == WIRE_SCOPE_GROUP && channel->slave_fd >= 0 ? terminal_foreground(channel->outputs[0].fd) : 0;
    pid_t target =
        scope == WIRE_SCOPE_PROCESS || channel->is_alone ? channel->pid : -(group != 0 ? group : channel->pid);
    return kill(target, (int)signal_number) < 0 && errno != ESRCH ? -errno : 0;
}

void channel_resize(const struct channel *channel, uint16_t rows, uint16_t columns)
{
    if (channel->has_terminal && channel->outputs[0].fd >= 0)
        terminal_resize(channel->outputs[0].fd, rows, columns);
}

void channel_close_stream(struct channel *channel, uint8_t stream)
{
    if (stream != WIRE_STREAM_STDOUT && stream != WIRE_STREAM_STDERR)
        return;
    end_output(channel, stream - WIRE_STREAM_STDOUT);
    if (stream == WIRE_STREAM_STDOUT)
        close_fd(&channel->slave_fd); /* which nobody is at the other end of */
    channel_drain(channel);
}

static struct wire_bytes tail_of(const struct output *output)
{
    struct wire_bytes tail = {0};

    tail.length = (uint32_t)output_next(output, TAIL_MAX, &tail.data);
    return tail;
}

static uint64_t microseconds(struct timeval time)
{
    return (uint64_t)time.tv_sec * 1000000U + (uint64_t)time.tv_usec;
}

static void fill_exit(const struct channel *channel, struct wire_exit *exit)
{
    struct statvfs disk = {0};
    const struct output *out = &channel->outputs[0];
    const struct output *err = &channel->outputs[1];

    (void)statvfs("/tmp", &disk);
    *exit = (struct wire_exit){
        .channel = channel->id,
        .kind = (uint8_t)channel->exit_kind,
        .value = channel->exit_value,
        .failed = (uint8_t)channel->failed,
        .user_us = microseconds(channel->usage.ru_utime),
        .system_us = microseconds(channel->usage.ru_stime),
        .peak_bytes = (uint64_t)channel->usage.ru_maxrss * 1024,
        .duration_ns = channel->duration_ns,
        .disk_free_bytes = (uint64_t)disk.f_bavail * disk.f_frsize,
        .disk_free_inodes = disk.f_favail,
        .stdout_total = out->total,
        .stderr_total = err->total,
        .stdout_offset = out->sent,
        .stderr_offset = err->sent,
        .stdout_tail = tail_of(out),
        .stderr_tail = tail_of(err),
    };
}

/* All that is unsent, without a break in the ring, fits into EXIT. */
static bool fits_exit(const struct output *output)
{
    const uint8_t *data;

    return output_unsent(output) <= TAIL_MAX && output_next(output, TAIL_MAX, &data) == output_unsent(output);
}

static bool next_output(const struct channel *channel, size_t stream, struct wire_message *message)
{
    const struct output *output = &channel->outputs[stream];
    uint64_t hold = channel->collect && channel->state != CHANNEL_ENDED ? COLLECT_HOLD : 0;
    struct wire_stdout_data data = {.channel = channel->id, .offset = output->sent};

    if (output_unsent(output) <= hold || (channel->state == CHANNEL_ENDED && fits_exit(output)))
        return false;
    data.data.length = (uint32_t)output_next(output, WIRE_DATA_MAX, &data.data.data);
    message->type = stream == 0 ? WIRE_STDOUT : WIRE_STDERR;
    if (stream == 0)
        message->stdout_data = data;
    else
        message->stderr_data = (struct wire_stderr_data){data.channel, data.offset, data.data};
    return true;
}

bool channel_next_message(struct channel *channel, struct wire_message *ret_message)
{
    if (channel->released)
        return false;
    if (channel->resumed_due) {
        *ret_message = (struct wire_message){.type = WIRE_RESUMED,
                                             .resumed = {.channel = channel->id,
                                                         .start = channel->resume_start,
                                                         .stdin_offset = channel->stdin_offset,
                                                         .taken = channel->stdin_taken,
                                                         .closed = channel->stdin_fd < 0,
                                                         .ended = channel->stdin_end,
                                                         .stdout_offset = channel->outputs[0].sent,
                                                         .stderr_offset = channel->outputs[1].sent}};
        return true;
    }
    if (channel->taken_due && channel->state == CHANNEL_RUNNING) {
        *ret_message = (struct wire_message){
            .type = WIRE_TAKEN,
            .taken = {.channel = channel->id, .offset = channel->stdin_taken, .closed = channel->stdin_fd < 0}};
        return true;
    }
    if (next_output(channel, 0, ret_message) || next_output(channel, 1, ret_message))
        return true;
    if (channel->state != CHANNEL_ENDED || channel->exit_sent)
        return false;
    ret_message->type = WIRE_EXIT;
    fill_exit(channel, &ret_message->exit);
    return true;
}

void channel_sent(struct channel *channel, const struct wire_message *message)
{
    switch ((int)message->type) { /* only some of them come here */
    case WIRE_RESUMED:
        channel->resumed_due = false;
        break;
    case WIRE_TAKEN:
        channel->taken_due = false;
        break;
    case WIRE_STDOUT:
        channel->outputs[0].sent += message->stdout_data.data.length;
        break;
    case WIRE_STDERR:
        channel->outputs[1].sent += message->stderr_data.data.length;
        break;
    case WIRE_EXIT:
        channel->outputs[0].sent += message->exit.stdout_tail.length;
        channel->outputs[1].sent += message->exit.stderr_tail.length;
        channel->exit_sent = true;
        break;
    default:
        break;
    }
}
