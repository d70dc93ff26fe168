/*
 * wire: structs, encoder and decoder for the messages of messages.h.
 *
 * Used by every process, root included, so it is small and does no I/O. A frame is an 8-byte header (length, version,
 * type, two zero bytes) and the fields in order, little-endian. It carries its own length, so that the same frames
 * travel over SOCK_SEQPACKET and over a plain byte stream.
 *
 * Decoded strings and byte ranges are views into the frame: they live as long as the buffer they were decoded from.
 * Decoding is strict: a wrong length, version, type, maximum, a string with a NUL inside or without one at its end,
 * or a byte too many is -EBADMSG. So every accepted frame has exactly one encoding.
 */
#pragma once

#include "base/error.h"
#include "wire/messages.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WIRE_VERSION = 1,
    WIRE_HEADER_SIZE = 8,
    WIRE_FRAME_MAX = 65536,
    WIRE_DATA_MAX = 61440,      /* bytes in one STDIN, STDOUT or STDERR frame */
    WIRE_WINDOW = 524288,       /* unacknowledged bytes per stream */
    WIRE_STRINGS_MAX = 1048576, /* arguments and environment of one EXEC, all frames together */
    WIRE_DIRS_MAX = 16,
    WIRE_LISTENERS_MAX = 16, /* not counting the unix socket */
    WIRE_ONLY_MAX = 128,     /* programs that can be listed */
    WIRE_INNER_IDS = 65536,  /* users and groups in a sandbox */
    WIRE_GUEST_FD = 3,       /* where init finds its end of the guest link */
    WIRE_CGROUP_FD = 4,      /* and its own cgroup */
    WIRE_PROC_FD = 5,        /* and a /proc that can be written, where the sandbox's can't */
    WIRE_KEEPER_FD = 3,      /* where gateway, reader and airlock find the keeper */
    WIRE_CLIENT_FD = 4,      /* where the airlock finds who tells it the rules */
    WIRE_PROXY_PORT = 15004, /* of the HTTP proxy in every sandbox with a network */
};

#define WIRE_GROUP_NAME "x%x" /* of the cgroups that init makes below its own, from 0 on */

enum wire_sender {
    WIRE_BY_CLIENT = 1,
    WIRE_BY_KEEPER = 2,
    WIRE_BY_ZYGOTE = 4,
    WIRE_BY_GUEST = 8,
    WIRE_BY_READER = 16,
    WIRE_BY_AIRLOCK = 32,
    WIRE_BY_HELPER = 64,
    WIRE_BY_WORKER = 128, /* a process of init's that works on files */
};

enum wire_state { WIRE_IN_STARTING = 1, WIRE_IN_RUNNING = 2 };

enum {
    WIRE_CREATE_FOLDER = 1,
    WIRE_CREATE_ROOT_RW = 2,
    WIRE_CREATE_TIMES = 4,
    WIRE_CREATE_IMAGE = 8,
    WIRE_CREATE_TERMINAL = 16,
    WIRE_CREATE_NETWORK = 32, /* the airlock is its way out */
};
enum { WIRE_DIR_WRITABLE = 1 };
enum { WIRE_SETTINGS_PRESETS = 1, WIRE_SETTINGS_TLS = 2, WIRE_SETTINGS_UNIX = 4 };
enum {
    WIRE_SPAWN_USR = 1,
    WIRE_SPAWN_ROOT_RW = 2,
    WIRE_SPAWN_NO_SETID = 4,
    WIRE_SPAWN_TIMES = 8,
    WIRE_SPAWN_IMAGE = 16,
    WIRE_SPAWN_TERMINAL = 32,
    WIRE_SPAWN_ONLY = 64,     /* execute nothing but `programs` */
    WIRE_SPAWN_NETWORK = 128, /* with a link to say PLUG on */
};
enum {
    WIRE_HELLO_TREE_KILL = 1,
    WIRE_HELLO_SCOPED_SIGNALS = 2,
    WIRE_HELLO_SCOPED_SOCKETS = 4,
    WIRE_HELLO_TERMINAL = 8,
};
enum { WIRE_EXEC_COLLECT = 1, WIRE_EXEC_STDIN = 2, WIRE_EXEC_TTY = 4 };
enum wire_filter { WIRE_FILTER_TIGHT = 0, WIRE_FILTER_STANDARD = 1 };
enum wire_scope { WIRE_SCOPE_PROCESS = 0, WIRE_SCOPE_GROUP = 1, WIRE_SCOPE_TREE = 2 };
enum wire_stream { WIRE_STREAM_STDOUT = 1, WIRE_STREAM_STDERR = 2 };
/* What a command that was not started failed at. */
enum wire_failed { WIRE_FAILED_PROGRAM = 0, WIRE_FAILED_FOLDER = 1, WIRE_FAILED_SETUP = 2, WIRE_FAILED_TERMINAL = 3 };
enum wire_exit_kind { WIRE_EXIT_CODE = 0, WIRE_EXIT_SIGNAL = 1, WIRE_EXIT_NOT_STARTED = 2 };

enum wire_decision_kind {
    WIRE_DECISION_DNS,     /* a question for a name */
    WIRE_DECISION_CONNECT, /* a connection */
    WIRE_DECISION_END,     /* of a connection that was allowed */
    WIRE_DECISION_KINDS,
};
enum wire_verdict { WIRE_VERDICT_DENIED, WIRE_VERDICT_ALLOWED, WIRE_VERDICT_FAILED, WIRE_VERDICTS };

enum wire_file_operation {
    WIRE_FILE_READ,
    WIRE_FILE_WRITE,
    WIRE_FILE_APPEND,
    WIRE_FILE_STAT,
    WIRE_FILE_LIST,
    WIRE_FILE_MKDIR,
    WIRE_FILE_REMOVE,
    WIRE_FILE_RENAME,
    WIRE_FILE_CHMOD,
    WIRE_FILE_WATCH,
    WIRE_FILE_OPERATIONS,
};
enum {
    WIRE_FILE_PARENTS = 1,   /* make the folders that are missing above it */
    WIRE_FILE_EXCLUSIVE = 2, /* only when the name is free */
    WIRE_FILE_ATOMIC = 4,    /* all of it, or what was there before */
    WIRE_FILE_RECURSIVE = 8, /* with all that is in it */
    WIRE_FILE_GROWING = 16,  /* also what is added while it is read */
    WIRE_FILE_NO_FOLLOW = 32,
};
#define WIRE_FILE_ALL UINT64_MAX /* the length of all there is, or of what is not known yet */
enum wire_entry_kind {
    WIRE_ENTRY_FILE,
    WIRE_ENTRY_FOLDER,
    WIRE_ENTRY_SYMLINK,
    WIRE_ENTRY_FIFO,
    WIRE_ENTRY_SOCKET,
    WIRE_ENTRY_DEVICE,
    WIRE_ENTRY_KINDS,
};
enum wire_event_kind {
    WIRE_EVENT_WATCHING, /* the first: what happens from now on is told */
    WIRE_EVENT_CREATED,
    WIRE_EVENT_MODIFIED,
    WIRE_EVENT_CLOSED,  /* by one who could write to it */
    WIRE_EVENT_CHANGED, /* mode, owner, times */
    WIRE_EVENT_REMOVED,
    WIRE_EVENT_MOVED_FROM,
    WIRE_EVENT_MOVED_TO,
    WIRE_EVENT_OVERFLOW, /* more happened than could be told: look again */
    WIRE_EVENT_GONE,     /* the last: what was watched is not there any more */
    WIRE_EVENT_KINDS,
};

struct wire_str {
    const char *text; /* ends in NUL */
    uint32_t length;  /* without it */
};

struct wire_bytes {
    const uint8_t *data;
    uint32_t length;
};

/* Strings one after the other, each ending in NUL. */
struct wire_strv {
    const char *data;
    uint32_t length;
    uint32_t count;
};

struct wire_u64v {
    const uint8_t *data; /* unaligned, little-endian: read with wire_u64v_at() */
    uint32_t count;
};

#define WIRE_C_u8 uint8_t
#define WIRE_C_u16 uint16_t
#define WIRE_C_u32 uint32_t
#define WIRE_C_u64 uint64_t
#define WIRE_C_str struct wire_str
#define WIRE_C_bytes struct wire_bytes
#define WIRE_C_strv struct wire_strv
#define WIRE_C_u64v struct wire_u64v

#define WIRE_STRUCT_FIELD(kind, name, maximum) WIRE_C_##kind name;
#define WIRE_STRUCT(NAME, name, number, senders, states, fds)                                                          \
    struct wire_##name {                                                                                               \
        WIRE_FIELDS_##name(WIRE_STRUCT_FIELD)                                                                          \
    };
WIRE_MESSAGES(WIRE_STRUCT)

#define WIRE_ENUM(NAME, name, number, senders, states, fds) WIRE_##NAME = (number),
enum wire_type { WIRE_NOTHING = 0, WIRE_MESSAGES(WIRE_ENUM) };

#define WIRE_UNION_MEMBER(NAME, name, number, senders, states, fds) struct wire_##name name;
struct wire_message {
    enum wire_type type;
    union {
        WIRE_MESSAGES(WIRE_UNION_MEMBER)
    };
};

/* The frame's length, or -EMSGSIZE when a field is over its maximum or the frame does not fit `size`. */
_must_use_ int wire_encode(const struct wire_message *message, void *frame, size_t size);

/* 0 or -EBADMSG. */
_must_use_ int wire_decode(const void *frame, size_t length, struct wire_message *ret_message);

/* How long the frame that starts here is: 0 when fewer than 8 bytes are here, -EBADMSG when it can't be one. */
_must_use_ int wire_frame_length(const void *data, size_t length);

/* After -EBADMSG: the frame begins as one of another version does. */
bool wire_is_other_version(const void *frame, size_t length);

/* May this sender send it to a receiver in this state, with so many descriptors? */
bool wire_permits(enum wire_type type, enum wire_sender sender, enum wire_state state, size_t fd_count);

const char *wire_name(enum wire_type type);

struct wire_str wire_str(const char *text);
uint64_t wire_u64v_at(struct wire_u64v vector, uint32_t index);

/* The next string of a vector: start with NULL; NULL at the end. */
const char *wire_strv_next(struct wire_strv vector, const char *current);
