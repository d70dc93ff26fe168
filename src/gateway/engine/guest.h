/*
 * guest: the conversation with one init, which is taken to be hostile: an agent may own PID 1.
 *
 * Pure: takes decoded messages, gives events. What is not permitted, not in order, not within the window or about a
 * channel that was never opened is -EBADMSG, after which the sandbox is to be ended. Nothing here grows because of what
 * a guest says.
 *
 * A channel's number holds the start of the gateway that opened it. What an earlier gateway opened and nobody knows any
 * more is told apart by that, and may be released.
 */
#pragma once

#include "wire/wire.h"

enum { GUEST_STREAMS = 2, GUEST_CHANNELS_MAX = 256 };

struct guest_channel {
    uint64_t id;
    struct guest_channel *next;
    void *owner;
    bool has_errors; /* may say something on STDERR: a command without a terminal */
    bool is_file;
    bool stdin_closed;            /* nobody reads it any more */
    uint64_t caps[GUEST_STREAMS]; /* 0: none */
    uint64_t received[GUEST_STREAMS];
    uint64_t acked[GUEST_STREAMS];
    uint64_t sent; /* standard input */
    uint64_t taken;
    bool is_input_unknown; /* an earlier gateway's: `sent` and `taken` are not known until init has said them */
    bool is_resumed;       /* an earlier gateway's: what was under way to that one may still come */
    uint64_t skipped;      /* bytes of that, which is bounded */
};

struct guest {
    enum wire_state state;
    uint32_t start; /* of this gateway */
    uint32_t features;
    uint32_t channels_max;
    struct guest_channel *channels;
    size_t channel_count;
    struct wire_exit exit; /* the last one, without what had come before */
};

enum guest_kind {
    GUEST_TIMES,  /* the last word of the child that became init: nothing to do */
    GUEST_FAILED, /* a step of its setting up has failed: `setup` */
    GUEST_HELLO,
    GUEST_OUTPUT,  /* `data` of `stream` */
    GUEST_TAKEN,   /* there is room for standard input, or nobody reads it */
    GUEST_EXIT,    /* with the last of the output: `exit`. The channel is closed */
    GUEST_RESUMED, /* where standard input goes on is known: `resumed` */
    GUEST_STALE,   /* `id`, a channel of an earlier gateway's */
    GUEST_OLD,     /* what came was said before, or will be said again: nothing to do */
};

struct guest_event {
    enum guest_kind kind;
    struct guest_channel *channel;
    uint64_t id;
    size_t stream;
    struct wire_bytes data;
    const struct wire_exit *exit;   /* lives as long as the message */
    const struct wire_setup *setup; /* likewise */
    const struct wire_resumed *resumed;
    uint64_t gaps[GUEST_STREAMS]; /* of the output, in front of what comes next */
};

void guest_init(struct guest *guest, uint32_t start);

/* The number of a channel: the start of its gateway, whether it is a file's, and a count below 2^31. */
uint64_t guest_channel_id(uint32_t start, bool is_file, uint32_t count);

void guest_open(struct guest *guest, struct guest_channel *channel);
void guest_close(struct guest *guest, struct guest_channel *channel);

/* 0 or -EBADMSG. */
_must_use_ int guest_hear(struct guest *guest, const struct wire_message *message, struct guest_event *ret_event);

/* How much standard input may be sent now. */
size_t guest_stdin_room(const struct guest_channel *channel);
