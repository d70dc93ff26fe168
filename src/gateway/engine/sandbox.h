/*
 * sandbox: one sandbox as the gateway sees it: its state, its settings, its owner, its end.
 *
 * Used by the surfaces. Owned by the engine. The states and what leads from one to the other are one table, state.c.
 *
 * `stopped` means that no command runs and none can be started; files stay, and so does init, whose mount namespace
 * holds them. The keeper can't keep files without it.
 */
#pragma once

#include "gateway/engine/engine.h"

enum sandbox_state {
    SANDBOX_CREATING,
    SANDBOX_READY, /* shown as "running" */
    SANDBOX_PAUSED,
    SANDBOX_STOPPED,
    SANDBOX_STOPPING, /* being ended */
    SANDBOX_GONE,
    SANDBOX_FAILED, /* it was never made */
    SANDBOX_STATES,
};

enum sandbox_reason {
    SANDBOX_NO_REASON,
    SANDBOX_DESTROYED,
    SANDBOX_IDLE,
    SANDBOX_EXPIRED,
    SANDBOX_OOM,
    SANDBOX_CRASHED, /* init ended, or sent what it may not */
    SANDBOX_DRAINED,
    SANDBOX_REASONS,
};

enum sandbox_network { SANDBOX_NETWORK_NONE, SANDBOX_NETWORK_ALLOWLIST, SANDBOX_NETWORK_FULL };

enum {
    SANDBOX_TEXT_MAX = 256,       /* of names: owner, agent, template */
    SANDBOX_SETTINGS_MAX = 65536, /* of what the surface wants back */
    SANDBOX_ENV_MAX = 65536,
};

/* What can't be changed once it is made: sandboxes of one class are alike until they are claimed. */
struct sandbox_class {
    const char *template_name;
    int root_fd; /* the template's folder, or -1 for template host; stays the caller's. Equal names: equal folders */
    uint32_t user;
    uint8_t filter; /* enum wire_filter: of its execs */
    enum sandbox_network network;
    bool root_is_writable;
    bool disk_is_image;
    uint64_t disk_bytes;
    uint64_t disk_inodes; /* 0: what fits the size */
    uint64_t policy_generation;
    const char *const *only; /* the programs that may be executed, up to NULL; NULL: all */
};

/* What can be changed at any time. */
struct sandbox_limits {
    uint64_t memory_bytes;
    uint32_t processes;
    uint32_t cpu_milli;  /* 0: all there are */
    uint32_t cpu_weight; /* 0: as others */
};

struct sandbox_settings {
    struct sandbox_class class;
    struct sandbox_limits limits;
    uint64_t idle_timeout_ms; /* 0: none. Paused ones do not get idle */
    uint64_t lifetime_ms;     /* 0: without end */
    const char *owner;        /* the principal */
    const char *agent;
    const char *const *env; /* NAME=value of its execs, up to NULL; NULL: none */
    const char *extra;      /* what the surface wants back, whatever it means */
};

struct sandbox;

/* `err` is NULL when it went well. */
typedef void (*sandbox_done)(void *data, struct sandbox *sandbox, const struct error *err);

/*
 * Make one, or claim one of the pool. `done` comes when it is ready and recorded, or could not be made. One that was
 * claimed is READY at once and takes execs before that. ERROR_LIMIT when there are too many.
 */
_must_use_ int sandbox_create(struct engine *engine, const struct sandbox_settings *settings, sandbox_done done,
                              void *data, struct sandbox **ret_sandbox, struct error *err);

/* NULL when there is none with this id, or when it is another's. `owner` NULL: whoever's it is. */
struct sandbox *sandbox_find(struct engine *engine, const char *id, const char *owner);

/* All of an owner's, oldest first: the first one whose `order` is above `after`; 0: the first. */
struct sandbox *sandbox_after(struct engine *engine, uint64_t after, const char *owner);

/* The one that was created after this one; NULL: the oldest, whoever's it is. */
struct sandbox *sandbox_next(struct engine *engine, const struct sandbox *current);

/* Answers when that is recorded; what is left is removed meanwhile and after. `done` may be NULL. */
void sandbox_destroy(struct sandbox *sandbox, enum sandbox_reason reason, sandbox_done done, void *data);

_must_use_ int sandbox_pause(struct sandbox *sandbox, sandbox_done done, void *data, struct error *err);
_must_use_ int sandbox_resume(struct sandbox *sandbox, sandbox_done done, void *data, struct error *err);

/* Kill all its commands and refuse new ones; `done` when the last has ended. */
_must_use_ int sandbox_stop(struct sandbox *sandbox, sandbox_done done, void *data, struct error *err);
_must_use_ int sandbox_restart(struct sandbox *sandbox, sandbox_done done, void *data, struct error *err);

_must_use_ int sandbox_set_limits(struct sandbox *sandbox, const struct sandbox_limits *limits, sandbox_done done,
                                  void *data, struct error *err);

struct sandbox_usage {
    uint64_t cpu_us;
    uint64_t memory_bytes;
    uint64_t memory_peak_bytes;
    uint64_t disk_free_bytes; /* when its last command ended; 0 before */
    uint64_t disk_free_inodes;
    uint32_t processes;
    uint32_t processes_peak;
    uint32_t processes_refused;
    uint32_t oom_kills;
};
typedef void (*sandbox_usage_done)(void *data, const struct sandbox_usage *usage, const struct error *err);
_must_use_ int sandbox_measure(struct sandbox *sandbox, sandbox_usage_done done, void *data, struct error *err);

/* Views into the sandbox. */
struct sandbox_info {
    const char *id;
    uint64_t number; /* the keeper's name for it */
    uint64_t order;  /* its place in lists: a cursor */
    enum sandbox_state state;
    enum sandbox_reason reason;
    const struct sandbox_settings *settings;
    uint64_t created_ms; /* since 1970 */
    uint64_t expires_ms; /* 0: never */
    uint64_t last_used_ms;
    uint64_t executed; /* execs so far */
    uint32_t running;  /* execs now */
    uint32_t features; /* WIRE_HELLO_*: what init says is in force */
    bool was_pooled;
};
void sandbox_get(const struct sandbox *sandbox, struct sandbox_info *ret_info);

/* After a restart of the gateway: one that was recorded as live, with the guest link that the keeper kept. */
struct sandbox_adopted {
    const char *id;
    uint64_t number;
    enum sandbox_state state; /* as recorded: READY, PAUSED or STOPPED */
    const struct sandbox_settings *settings;
    uint64_t created_ms;
    uint64_t last_channel; /* the highest that any of its recorded execs had; 0: none */
    uint32_t features;
    int guest_fd; /* becomes the engine's, also after a failure */
};
_must_use_ int sandbox_adopt(struct engine *engine, const struct sandbox_adopted *adopted, struct sandbox **ret_sandbox,
                             struct error *err);

/* One of the keeper's that was never recorded: nobody was told of it. It is ended. */
void sandbox_disown(struct engine *engine, uint64_t number, int guest_fd);

const char *sandbox_state_name(enum sandbox_state state);    /* as the API shows it */
const char *sandbox_reason_name(enum sandbox_reason reason); /* "" for none */
