/*
 * internal: what the parts of the engine share: the structs behind its opaque pointers, and the calls between parts.
 * Included by engine/'s own .c files and by nobody else.
 *
 * Sandboxes and execs are counted: by the engine while they are in its tables, by each handle that is not closed yet,
 * by each request to the keeper or the recorder that was not answered, by each follower.
 */
#pragma once

#include "gateway/engine/budget.h"
#include "gateway/engine/events.h"
#include "gateway/engine/exec.h"
#include "gateway/engine/files.h"
#include "gateway/engine/guest_link.h"
#include "gateway/engine/keeper_link.h"
#include "gateway/engine/pool.h"
#include "gateway/engine/recorder.h"
#include "gateway/engine/ring.h"
#include "gateway/engine/sandbox.h"
#include "gateway/engine/state.h"
#include "gateway/engine/table.h"

enum {
    ENGINE_OWNER_SIZE = 64,
    ENGINE_TICK_MS = 1000,
    ENGINE_KILL_LIMIT_MS = 30000, /* how long a kill may take before init is taken to be gone */
    ENGINE_READ_LIMIT_MS = 30000, /* how long init may read nothing */
    ENGINE_CRASH_WAIT_MS = 2000,  /* how long the keeper may take to say why a sandbox ended */
    ENGINE_DESTROY_AGAIN_MS = 10000,
    ENGINE_RECORD_REST_MS = 1000, /* how long nothing is started after a record failed */
    ENGINE_EXECS_PER_SANDBOX = 128,
    ENGINE_STALL_MS = 30000,
    ENGINE_EVENTS_KEPT = 4096,
    ENGINE_USER = 65534,
};

/* A request to the keeper about one sandbox: answered in the order they were made. */
struct request {
    struct request *next;
    enum wire_type type;
    bool frozen; /* of a FREEZE */
    struct sandbox_limits limits;
    void (*answered)(struct sandbox *sandbox, struct request *request, const struct wire_message *answer,
                     const struct error *err);
    sandbox_done done;
    sandbox_usage_done usage_done;
    struct exec *exec;
    void *data;
};

struct pool_class {
    struct sandbox_settings settings; /* class and limits; owned, root_fd included */
    void *block;
    uint32_t min_idle;
    uint32_t max_idle;
    uint32_t idle;
    uint32_t making;
    struct sandbox *sandboxes; /* idle ones, the oldest first */
};

struct sandbox {
    struct table_entry by_id;
    struct table_entry by_number;
    struct engine *engine;
    struct sandbox *older;
    struct sandbox *newer;
    uint32_t refs;
    char id[ENGINE_ID_SIZE];
    uint64_t number;
    uint64_t order;
    enum sandbox_state state;
    enum sandbox_reason reason;
    struct error failure; /* why it was not made */
    bool is_listed;       /* callers can find it */
    bool is_counted;      /* among the live ones of callers */
    bool was_pooled;
    bool is_slow;      /* to be made */
    bool is_created;   /* the keeper has it */
    bool is_recorded;  /* somebody was or will be told of it */
    bool is_unsettled; /* adopted, its execs perhaps not: until engine_go() it is not heard, and nothing is cleared away
                        */
    bool is_destroyed; /* the keeper was asked to end it */
    bool is_concluded; /* execs, record and event of its end are done */
    struct pool_class *pool; /* whose it is until it is claimed; gone when the classes were changed */
    struct sandbox *pool_next;
    struct sandbox_settings settings;
    void *block;
    struct sandbox_limits limits; /* in force */
    uint64_t created_ms;          /* since 1970, as the next two */
    uint64_t ended_ms;
    uint64_t last_used_ms;
    uint64_t born_at; /* of the loop's clock, as all that end in _at */
    uint64_t used_at; /* the last time anything ran */
    uint64_t ended_at;
    uint64_t expires_at; /* 0: never */
    struct guest_link link;
    struct guest_channel warm_up; /* the first command of one in the pool, before it is claimed */
    uv_timer_t timer;
    bool has_timer;
    struct request *requests;
    struct request **requests_end;
    sandbox_done create_done;
    void *create_data;
    sandbox_done stop_done;
    void *stop_data;
    struct exec *execs; /* that have not ended */
    uint32_t exec_count;
    struct file_job *files;
    uint32_t file_slots;   /* in use, a bit each */
    uint32_t last_count;   /* of exec channels */
    uint64_t last_channel; /* that earlier gateways are known to have opened */
    uint64_t executed;
    uint32_t oom_kills;   /* as the keeper counts them */
    uint32_t oom_blamed;  /* of these, for which an exec was ended */
    uint64_t oom_at;      /* the last time */
    bool was_file_killed; /* an operation on files: memory ran out, and it went first */
    uint64_t disk_free_bytes;
    uint64_t disk_free_inodes;
};

struct exec_follower {
    struct exec *exec;
    struct exec_follower *next;
    uint64_t seq;
    uint64_t progress_at;
    bool only_end;
    bool is_dropped;
    bool is_free; /* but its callback has not returned */
    bool is_told; /* its callback is running */
    exec_news news;
    void *data;
};

struct exec {
    struct table_entry by_id;
    struct engine *engine;
    struct sandbox *sandbox; /* NULL once its channel is closed */
    struct exec *next;       /* of the sandbox's */
    struct exec *older;      /* of the engine's, all that are kept */
    struct exec *newer;
    struct exec *ended_next; /* of those that have ended, in that order */
    struct exec *waiting_next;
    uint32_t refs;
    char id[ENGINE_ID_SIZE];
    char sandbox_id[ENGINE_ID_SIZE];
    char owner[ENGINE_OWNER_SIZE];
    const char *agent;
    const char *extra;
    enum exec_mode mode;
    enum exec_state state;
    bool is_listed;
    bool has_stdin;
    bool has_terminal;
    bool is_attached;
    bool is_recorded;
    bool is_counting;         /* it waits to hear whether memory ran out */
    bool is_output_recording; /* or its end */
    bool is_waiting;          /* for room in the recorder */
    bool is_spooling;         /* its output goes to the spool. If not, but there is one: that is being recorded */
    bool is_spool_refused;
    bool is_end_due;    /* it has ended, which is recorded after its output */
    bool is_unrecorded; /* recording failed: nobody can be told how it ended */
    bool is_held;       /* it waits for a follower */
    bool is_killed;
    bool is_timed_out;
    bool is_oom;
    bool wants_forgetting;
    bool is_pausing; /* its timer stands still */
    bool has_timer;
    bool stdin_ended;
    char *input; /* what is still to be written to it, or NULL */
    size_t input_at;
    size_t input_length;
    uint64_t timeout_ms;
    uint64_t left_ms; /* of the timer, while it stands still */
    uint64_t started_ms;
    uint64_t started_at;
    uint64_t ended_at;
    struct guest_channel channel;
    struct ring ring;
    struct budget_share share; /* of the memory for rings: until it has ended and nobody reads it */
    uint64_t recorded;         /* seq */
    uint64_t recording;        /* seq up to which the recorder was asked, one way or the other */
    uint64_t stored;           /* seq up to which it was asked but for the spool */
    uint64_t seq_at_tick;
    struct recorder_spool *spool;
    uint64_t recorded_offsets[EXEC_STREAMS];
    uint64_t recording_offsets[EXEC_STREAMS];
    size_t kept_bytes;
    uint8_t last[EXEC_STREAMS][4]; /* the last bytes of each stream, for a cut at a boundary */
    uint8_t cut[EXEC_STREAMS];
    struct exec_result result;
    struct exec_follower *followers;
    exec_done room;
    void *room_data;
    uv_timer_t timer;
};

/* A request to the recorder. */
struct record {
    struct engine *engine;
    struct sandbox *sandbox;
    struct exec *exec;
    void (*then)(struct record *record, int status);
    sandbox_done done;
    exec_done exec_done;
    void *data;
    uint64_t seq;
    uint64_t from; /* seq, as `stored` was before */
    bool is_spool;
};

struct event_subscriber {
    struct engine *engine;
    struct event_subscriber *next;
    uint64_t seq; /* the last it was given */
    bool is_told;
    bool is_free;
    bool has_owner;
    char owner[ENGINE_OWNER_SIZE];
    event_news news;
    void *data;
};

struct engine {
    uv_loop_t *loop;
    const struct recorder *recorder;
    struct engine_options options;
    struct keeper_link keeper;
    struct table sandboxes; /* by id */
    struct table numbers;   /* by number, those of the pool and those that end included */
    struct table execs;
    struct sandbox *oldest; /* of those callers can find */
    struct sandbox *newest;
    struct exec *exec_oldest;
    struct exec *exec_newest;
    struct exec *ended_first;
    struct exec **ended_end;
    struct exec *waiting_first; /* of those whose output or end the recorder has no room for */
    struct exec **waiting_end;
    uint64_t result_bytes;
    struct budget budget; /* of what has not ended */
    uint32_t last_number;
    uint64_t last_order;
    uint32_t live;
    uint32_t creating;        /* that a caller waits for */
    uint32_t running;         /* execs */
    uint64_t exec_started_at; /* the last of them */
    uint64_t exec_ended_at;
    uint32_t in_use;      /* live ones that came from the pool */
    uint32_t handles;     /* not closed yet */
    uint32_t records;     /* not answered yet */
    struct record *spare; /* for when there is no memory */
    struct engine_figures totals;
    bool has_record_failed;    /* the last one */
    uint64_t record_failed_at; /* then: when */
    bool is_draining;
    bool is_closing;
    engine_done drained;
    void *drained_data;
    engine_done closed;
    void *closed_data;
    uv_timer_t tick;
    uv_timer_t pool_timer;
    uv_timer_t again; /* runs while somebody waits */
    struct pool_class pool[POOL_CLASSES_MAX];
    size_t pool_count;
    uint32_t pool_failures;
    uint64_t pool_last_at;
    uint64_t pool_claimed;
    uint64_t pool_missed;
    bool pool_is_running;
    bool pool_is_turning; /* it is being decided already */
    struct event *events;
    uint32_t events_room;
    uint64_t event_seq; /* the newest */
    struct event_subscriber *subscribers;
    uint8_t frame[WIRE_FRAME_MAX];
};

/* engine.c */
uint64_t engine_wall_ms(void);
void engine_handle_closed(struct engine *engine);
_must_use_ int engine_check_recording(const struct engine *engine, struct error *err);
void engine_check_drained(struct engine *engine);

/* record.c */
struct record *record_new(struct engine *engine, struct sandbox *sandbox, struct exec *exec,
                          void (*then)(struct record *record, int status));
void record_finished(void *request, int status);
/* `then` gets a status and is called later in any case. */
void record_sandbox(struct sandbox *sandbox, void (*then)(struct record *record, int status), sandbox_done done,
                    void *data);

/* settings.c */
_must_use_ int settings_copy(const struct sandbox_settings *settings, struct sandbox_settings *ret_settings,
                             void **ret_block, struct error *err);
bool settings_is_same_class(const struct sandbox_class *a, const struct sandbox_class *b);

/* sandbox.c */
void sandbox_unlist(struct sandbox *sandbox);
void sandbox_release_unknown(struct sandbox *sandbox, const uint64_t *known, size_t count);

/* sandbox_make.c */
struct sandbox *sandbox_allocate(struct engine *engine, uint64_t number);
void sandbox_give_up(struct sandbox *sandbox);
struct sandbox *sandbox_make(struct engine *engine, const struct sandbox_class *class,
                             const struct sandbox_limits *limits, struct error *err);
void sandbox_used(struct sandbox *sandbox);
void sandbox_arm(struct sandbox *sandbox);

/* sandbox_life.c */
struct sandbox *sandbox_of_number(const struct engine *engine, uint64_t number);
void sandbox_unref(struct sandbox *sandbox);
void sandbox_handle_closed(uv_handle_t *handle);
void sandbox_release_handles(struct sandbox *sandbox);
bool sandbox_enter(struct sandbox *sandbox, enum state_event event); /* false: not from this state */
void sandbox_heard(struct sandbox *sandbox, const struct wire_message *message, int *fds, size_t fd_count);
void sandbox_is_made(struct sandbox *sandbox);
void sandbox_finish(struct sandbox *sandbox, enum sandbox_reason reason);
void sandbox_start_ending(struct sandbox *sandbox, enum sandbox_reason reason);
void sandbox_misbehaved(struct sandbox *sandbox);
void sandbox_tick(struct sandbox *sandbox, uint64_t now);
void sandbox_abandon(struct sandbox *sandbox); /* the engine closes */
_must_use_ int sandbox_say(struct sandbox *sandbox, const struct wire_message *message);
int sandbox_not_running(const struct sandbox *sandbox, struct error *err);

/* sandbox_guest.c */
_must_use_ int sandbox_open_link(struct sandbox *sandbox, int fd);

/* sandbox_requests.c */
struct request *request_ask(struct sandbox *sandbox, const struct wire_message *message, struct error *err);
void request_answered(struct sandbox *sandbox, const struct wire_message *message, const struct error *err);
void request_fail_all(struct sandbox *sandbox, const struct error *err);
void sandbox_exec_ended(struct sandbox *sandbox); /* perhaps it was the last that a stop waits for */

/* exec.c */
void exec_unref(struct exec *exec);
void exec_add(struct sandbox *sandbox, struct exec *exec);
void exec_leave(struct exec *exec);  /* it has nothing to do with its sandbox any more */
void exec_unlist(struct exec *exec); /* nobody can find it any more */
void exec_arm(struct exec *exec, uint64_t ms);
void exec_close_timer(struct exec *exec);
void exec_hold_time(struct exec *exec, bool is_paused);
void exec_send_kill(struct exec *exec);
void exec_heard_output(struct exec *exec, size_t stream, struct wire_bytes data);
void exec_abandon(struct exec *exec);
void exec_give_back(struct exec *exec); /* its share, when nobody needs it */

/* exec_control.c */
void exec_feed(struct exec *exec);
void exec_heard_room(struct exec *exec);
void exec_heard_gaps(struct exec *exec, const uint64_t gaps[EXEC_STREAMS]);
void exec_heard_resumed(struct exec *exec, const struct wire_resumed *resumed);
void exec_link_drained(struct exec *exec);

/* exec_end.c */
void exec_heard_exit(struct exec *exec, const struct wire_exit *exit);
void exec_lost(struct exec *exec, enum sandbox_reason reason);
void exec_finished(struct exec *exec); /* its end is recorded, or can't be */
void exec_expire(struct engine *engine);
void exec_forget_oldest(struct engine *engine);
void exec_ran_out_of_memory(struct sandbox *sandbox);
void exec_end_half_alive(struct sandbox *sandbox);

/* exec_record.c */
void exec_record_output(struct exec *exec);
void exec_record_end(struct exec *exec);
void exec_check_pace(struct exec *exec);
void exec_give_up(struct exec *exec); /* it can't be recorded */
void exec_abandon_waiting(struct engine *engine);

/* exec_output.c */
_must_use_ int exec_take(struct exec *exec, size_t stream, struct wire_bytes data);
void exec_acknowledge(struct exec *exec);
void exec_tell(struct exec *exec);
void exec_drop_stalled(struct exec *exec, uint64_t now);

/* files.c */
void file_heard(struct file_job *job, const struct guest_event *event);
void file_link_drained(struct file_job *job);
void file_lost_all(struct sandbox *sandbox);
void file_abandon_all(struct sandbox *sandbox);

/* pool.c */
struct sandbox *pool_claim(struct engine *engine, const struct sandbox_class *class);
void pool_made(struct sandbox *sandbox);   /* it runs */
void pool_warmed(struct sandbox *sandbox); /* and has run something */
void pool_lost(struct sandbox *sandbox);   /* it failed or ended before it was claimed */
void pool_turn(struct engine *engine);
void pool_release(struct engine *engine);

/* events.c */
void event_publish(struct engine *engine, enum event_kind kind, const struct sandbox *sandbox, const struct exec *exec,
                   int64_t value);
