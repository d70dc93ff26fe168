/*
 * exec: one command in a sandbox, from its start until its result is forgotten.
 *
 * Used by the surfaces. Owned by the engine, whoever asked for it may go away. Output has a sequence number: SEQ is how
 * many bytes of standard output and standard error together, in the order in which they came, lie before it. What a
 * follower has read up to SEQ it need not be sent again: `after=SEQ` goes on there, also after a restart of the
 * gateway. Followers and results only ever show what is recorded.
 *
 * collect: the first `cap` bytes of each stream are kept, the rest is counted.
 * stream:  the newest `cap` bytes are kept. While somebody follows, the command waits for the slowest follower, as it
 *          would for the reader of a pipe; one that takes nothing for the stall limit is dropped.
 */
#pragma once

#include "gateway/engine/engine.h"

struct sandbox;
struct exec;

enum exec_stream { EXEC_STDOUT, EXEC_STDERR, EXEC_STREAMS };
enum exec_mode { EXEC_COLLECT, EXEC_STREAM };
enum exec_state { EXEC_RUNNING, EXEC_ENDING, EXEC_ENDED };

enum exec_end {
    EXEC_EXITED,      /* value: the code */
    EXEC_SIGNALED,    /* value: the signal */
    EXEC_NOT_STARTED, /* value: the errno, `failed` says at what */
    EXEC_LOST,        /* its sandbox ended: sandbox_reason in `value` */
};

struct exec_settings {
    const char *const *argv; /* up to NULL; NULL: shell is given */
    const char *shell;       /* for /bin/sh -c */
    const char *const *env;  /* over the sandbox's own; NULL: none */
    const char *folder;      /* NULL: /workspace */
    const char *agent;       /* NULL: the sandbox's */
    const char *extra;       /* what the surface wants back; NULL: nothing */
    uint32_t uid;            /* and gid */
    uint8_t filter;          /* enum wire_filter */
    enum exec_mode mode;
    bool has_stdin;
    const char *stdin_text; /* written to it, and then its end; copied. NULL: exec_write() does it */
    bool has_terminal;
    bool is_attached; /* it is killed when the last follower leaves it */
    uint16_t rows;
    uint16_t columns;
    uint64_t stdout_cap; /* in stream mode: of both streams together, at least EXEC_STREAM_CAP_MIN. Both caps are lower
                          * when memory is short */
    uint64_t stderr_cap;
    uint64_t timeout_ms; /* 0: none. Time in which the sandbox is paused does not count */
    uint64_t file_bytes; /* 0: no limit of its own, here and below */
    uint64_t cpu_seconds;
    uint32_t open_files;
};

enum { EXEC_STREAM_CAP_MIN = 2 << 20, EXEC_CAP_MAX = 64 << 20 };

struct exec_result {
    enum exec_end end;
    uint32_t value;
    uint8_t failed; /* enum wire_failed */
    bool timed_out;
    bool oom;    /* memory ran out, and all of it was killed */
    bool killed; /* by exec_kill(), sandbox_stop() or the end of its sandbox */
    bool truncated;
    uint64_t duration_ns;
    uint64_t user_us;
    uint64_t system_us;
    uint64_t peak_bytes;
    uint64_t totals[EXEC_STREAMS]; /* bytes the command wrote */
    uint64_t kept[EXEC_STREAMS];   /* of these, in collect mode: cut at a boundary of UTF-8 when truncated */
};

/* As a shell would say it: the code, 128+n for a signal, 126 or 127 when not started, -1 after a timeout or when lost.
 */
int exec_exit_code(const struct exec_result *result);

typedef void (*exec_done)(void *data, struct exec *exec, const struct error *err);

/*
 * Start one. `started` (may be NULL) comes when it is recorded. To wait for the end, follow the exec that is returned.
 * ERROR_LIMIT when there are too many or no memory is left for their output, engine_is_not_running() when the sandbox
 * does not run.
 */
_must_use_ int exec_start(struct sandbox *sandbox, const struct exec_settings *settings, exec_done started, void *data,
                          struct exec **ret_exec, struct error *err);

/* NULL when there is none with this id, when it was forgotten, or when it is another's. */
struct exec *exec_find(struct engine *engine, const char *id, const char *owner);

/* All of a sandbox's that are kept, oldest first; NULL after the last. */
struct exec *exec_next_of(struct engine *engine, const char *sandbox, const struct exec *current);

struct exec_info {
    const char *id;
    const char *sandbox;
    const char *owner;
    const char *agent;
    const char *extra;
    enum exec_state state;
    enum exec_mode mode;
    bool has_terminal;
    bool has_stdin;
    bool is_stdin_known; /* not yet after a restart of the gateway: nothing can be written for a moment */
    bool stdin_ended;
    bool is_stdin_closed; /* the command reads no more of it: what is written is thrown away */
    uint64_t stdin_next;  /* bytes of standard input that were written so far */
    uint64_t started_ms;
    uint64_t seq_first;               /* of what is kept */
    uint64_t seq_next;                /* of what is recorded */
    const struct exec_result *result; /* NULL until it has ended and that is recorded */
};
void exec_get(const struct exec *exec, struct exec_info *ret_info);

/*
 * Up to `length` bytes of standard input: how many were taken, 0 when it has to wait for room. `end` after all: it is
 * said when `stdin_ended` is true; else call again when there is room, with a length of 0 if all bytes were taken.
 * Taken is not given: what exec_has_input() is true of survives the gateway.
 */
_must_use_ int exec_write(struct exec *exec, const void *data, size_t length, bool end, size_t *ret_taken,
                          struct error *err);

/* All that was taken is on its way to init, or nobody wants it any more. Else exec_on_room() says when. */
bool exec_has_input(const struct exec *exec);

/* Somebody else is still writing. */
bool exec_is_written(const struct exec *exec);

/* Call once, when there is room for more or nobody will read it any more. NULL: don't. One at a time. */
void exec_on_room(struct exec *exec, exec_done room, void *data);

/* scope: enum wire_scope. */
_must_use_ int exec_signal(struct exec *exec, uint32_t number, uint8_t scope, struct error *err);
_must_use_ int exec_resize(struct exec *exec, uint16_t rows, uint16_t columns, struct error *err);

/* Kill the whole tree. Nothing to do when it has ended. */
void exec_kill(struct exec *exec);

/* It goes on when nobody follows it. */
void exec_detach(struct exec *exec);

/* Kill it if need be, and forget its result once it has ended. */
void exec_forget(struct exec *exec);

enum { EXEC_CHUNK_MAX = 256 << 10 };

/* A piece of output, at most EXEC_CHUNK_MAX bytes; the view lives until the caller returns to the loop. */
struct exec_chunk {
    uint64_t seq; /* of its first byte: after a gap more than was asked for */
    enum exec_stream stream;
    const uint8_t *data;
    size_t length;
};

/* What is kept from `after` on: 1, or 0 when there is no more now. */
_must_use_ int exec_read(const struct exec *exec, uint64_t after, struct exec_chunk *ret_chunk);

/*
 * A follower is told that there is news and takes it with exec_follower_next(), as much as it can use. It holds the
 * exec until exec_follower_free(), which may be called at any time; no callback comes after it.
 */
struct exec_follower;
typedef void (*exec_news)(void *data, struct exec_follower *follower);

struct exec_follow_options {
    uint64_t after;
    bool only_end; /* it wants no output: it delays nobody, and hears of the end alone */
};

_must_use_ int exec_follow(struct exec *exec, const struct exec_follow_options *options, exec_news news, void *data,
                           struct exec_follower **ret_follower, struct error *err);

/*
 * To be called once after exec_follow() too: news is what comes later. 1; 0 when there is nothing now; -ENODATA after
 * the last; -ETIME when it was dropped because it took nothing; -EIO when the output could not be recorded.
 */
_must_use_ int exec_follower_next(struct exec_follower *follower, struct exec_chunk *ret_chunk);
struct exec *exec_follower_exec(struct exec_follower *follower);
void exec_follower_free(struct exec_follower *follower);

/* After a restart of the gateway: one that was recorded as started and not as ended. */
struct exec_piece {
    enum exec_stream stream;
    const uint8_t *data;
    size_t length;
};

struct exec_adopted {
    const char *id;
    const char *owner;
    uint64_t channel;
    const struct exec_settings *settings;
    uint64_t started_ms;
    uint64_t seq_first;              /* of the first piece */
    uint64_t offsets[EXEC_STREAMS];  /* of what was recorded, all of it */
    const struct exec_piece *pieces; /* what is still there of it, in its order, without gaps, up to the end */
    size_t piece_count;
};
_must_use_ int exec_adopt(struct sandbox *sandbox, const struct exec_adopted *adopted, struct exec **ret_exec,
                          struct error *err);
