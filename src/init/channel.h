/*
 * channel: one command from EXEC to RELEASE: its process, its streams, its cgroup, its result. Or one operation on
 * files from FILE to RELEASE, whose worker is a command without a cgroup.
 *
 * INSIDE THE SANDBOX. Owned by the table in init.c. A channel lives on after its command has ended until the client
 * releases it, so that a client which comes back can ask for the rest.
 */
#pragma once

#include "init/group.h"
#include "init/output.h"
#include "wire/wire.h"

#include <sys/resource.h>
#include <sys/types.h>

enum channel_state {
    CHANNEL_RUNNING,  /* the command runs */
    CHANNEL_DRAINING, /* it ended; its cgroup is being emptied and its output read to the end */
    CHANNEL_ENDED,    /* only EXIT is left to be sent, again and again if need be, until RELEASE */
};

enum { CHANNEL_STREAMS = 2 };

struct channel {
    uint64_t id;
    enum channel_state state;
    bool collect;
    bool is_alone; /* a worker: it has no children, and is killed by its pid */
    bool exit_sent;
    bool released;         /* the client wants no more of it: free it once everything has ended */
    bool taken_due;        /* the client is to be told how much standard input was taken */
    bool resumed_due;      /* a client that came back is to be told where standard input goes on */
    uint32_t resume_start; /* which one */
    struct group group;
    uint32_t group_watched; /* by the event loop */
    pid_t pid;
    uint64_t start_ns;
    uint64_t duration_ns;
    enum wire_exit_kind exit_kind;
    uint32_t exit_value;
    enum wire_failed failed; /* of one that was not started */
    struct rusage usage;
    struct output outputs[CHANNEL_STREAMS];
    bool has_terminal; /* then standard input is written to the descriptor that output is read from */
    int slave_fd;      /* the command's end of its terminal, or -1 */
    int stdin_fd;
    uint32_t stdin_watched;
    bool stdin_end;        /* close it when the rest is written */
    bool stdin_in_line;    /* the last byte ended no line */
    uint64_t stdin_offset; /* accepted so far */
    uint64_t stdin_taken;  /* written to the pipe so far */
    uint8_t *stdin_rest;   /* accepted, not yet written: WIRE_WINDOW bytes, made when first needed */
    size_t stdin_rest_length;
};

/* Start the command of an EXEC message. Never fails: a command that could not be started has ended. NULL: no memory. */
struct channel *channel_new(const struct wire_exec *exec, const char *strings, size_t length, struct groups *groups);
struct channel *channel_new_file(const struct wire_file *file);
void channel_free(struct channel *channel);

/* The client wants no more of it. It is ended first, if it has to be. */
void channel_release(struct channel *channel, struct groups *groups);

/* Released, ended, and nothing left of it? */
bool channel_is_over(const struct channel *channel);

/* Standard input. -EINVAL when it is not what comes next or more than the window. */
_must_use_ int channel_write(struct channel *channel, const struct wire_stdin_data *data);

/* A client came back, and has output up to these offsets. -EINVAL when it can't have. */
_must_use_ int channel_resume(struct channel *channel, const struct wire_resume *resume);

/* Would it be of use to know when standard input takes more? */
static inline bool channel_has_stdin_left(const struct channel *channel)
{
    return channel->stdin_fd >= 0 && (channel->stdin_rest_length > 0 || channel->stdin_end);
}

/* It takes more: write what is left. */
void channel_flush_stdin(struct channel *channel);

/* The command's process ended: kill what it left behind. */
void channel_reaped(struct channel *channel, int wait_status, const struct rusage *usage, struct groups *groups);

/* Any process ended: perhaps the cgroup is empty now. */
void channel_settle(struct channel *channel, struct groups *groups);

_must_use_ int channel_signal(struct channel *channel, uint32_t signal_number, uint8_t scope,
                              const struct groups *groups);

void channel_resize(const struct channel *channel, uint16_t rows, uint16_t columns);

/* The reader of a stream has gone: the command's next write is EPIPE, or its terminal hangs up. */
void channel_close_stream(struct channel *channel, uint8_t stream);

/* Read what there is to read. */
void channel_drain(struct channel *channel);

/* The next message to send, if there is one; channel_sent() once it has gone out. */
bool channel_next_message(struct channel *channel, struct wire_message *ret_message);
void channel_sent(struct channel *channel, const struct wire_message *message);
