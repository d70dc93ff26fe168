#include "world.h"

#include "base/cleanup.h"
#include "base/tree.h"
#include "keeper/keeper.h"
#include "keeper/zygote.h"
#include "wire/wire.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { MIB = 1 << 20 };

struct sandbox_settings world_settings(const char *owner)
{
    return (struct sandbox_settings){
        .class = {.template_name = "host",
                  .root_fd = -1,
                  .user = WORLD_USER,
                  .filter = WIRE_FILTER_STANDARD,
                  .disk_bytes = 64 * MIB},
        .limits = {.memory_bytes = 128 * MIB, .processes = 64},
        .owner = owner,
        .agent = "tester",
    };
}

struct exec_settings world_shell(const char *script)
{
    return (struct exec_settings){.shell = script, .uid = WORLD_USER, .filter = WIRE_FILTER_STANDARD};
}

struct noted_exec *world_exec(struct world *world, const char *id)
{
    for (size_t i = world->exec_count; i > 0; i--) {
        if (strcmp(world->execs[i - 1].id, id) == 0)
            return &world->execs[i - 1];
    }
    return NULL;
}

struct noted_sandbox *world_sandbox(struct world *world, const char *id)
{
    for (size_t i = world->sandbox_count; i > 0; i--) {
        if (strcmp(world->sandboxes[i - 1].id, id) == 0)
            return &world->sandboxes[i - 1];
    }
    return NULL;
}

static void answer_all(uv_idle_t *idle)
{
    struct world *world = idle->data;
    size_t count = world->waiting_count;

    if (world->is_stuck)
        return;
    for (size_t i = 0; i < count; i++)
        world->waiting[i].done(world->waiting[i].request, world->failure);
    world->waiting_count -= count;
    memmove(world->waiting, world->waiting + count, world->waiting_count * sizeof *world->waiting);
    if (world->waiting_count == 0)
        (void)uv_idle_stop(idle);
}

static void wait_for_answer(struct world *world, recorder_done done, void *request)
{
    if (done == NULL)
        return;
    if (world->waiting_count == sizeof world->waiting / sizeof *world->waiting)
        abort();
    world->waiting[world->waiting_count].done = done;
    world->waiting[world->waiting_count++].request = request;
    if (!world->is_stuck)
        (void)uv_idle_start(&world->idle, answer_all);
}

static bool is_writing(const struct world *world)
{
    return !world->is_stuck && world->failure == 0 && !world->is_brief;
}

static void note_sandbox(void *context, const struct recorder_sandbox *what, recorder_done done, void *request)
{
    struct world *world = context;
    struct noted_sandbox *note = world_sandbox(world, what->id);

    wait_for_answer(world, done, request);
    if (!is_writing(world))
        return;
    if (note == NULL && world->sandbox_count < NOTES_MAX)
        note = &world->sandboxes[world->sandbox_count++];
    if (note == NULL)
        abort();
    (void)snprintf(note->id, sizeof note->id, "%s", what->id);
    note->number = what->number;
    note->state = what->state;
    note->reason = what->reason;
    note->created_ms = what->created_ms;
    note->records++;
}

static void note_exec(void *context, const struct recorder_exec *what, recorder_done done, void *request)
{
    struct world *world = context;

    wait_for_answer(world, done, request);
    if (!is_writing(world))
        return;
    if (world->exec_count == NOTES_MAX)
        abort();
    struct noted_exec *note = &world->execs[world->exec_count++];
    *note = (struct noted_exec){.channel = what->channel,
                                .mode = what->settings->mode,
                                .has_stdin = what->settings->has_stdin,
                                .cap = what->settings->stdout_cap,
                                .started_ms = what->started_ms,
                                .output = buf_init(NOTED_OUTPUT_MAX),
                                .is_whole = true};
    (void)snprintf(note->id, sizeof note->id, "%s", what->id);
    (void)snprintf(note->sandbox, sizeof note->sandbox, "%s", what->sandbox);
}

static void note_pieces(struct noted_exec *note, const struct recorder_output *pieces, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct recorder_output *what = &pieces[i];
        note->is_whole = note->is_whole && !note->has_ended && what->seq == note->output.length &&
                         what->offset == note->offsets[what->stream];
        note->offsets[what->stream] += what->length;
        if (buf_append(&note->output, what->data, what->length) < 0)
            abort();
    }
}

static void note_output(void *context, const struct recorder_output *pieces, size_t count, recorder_done done,
                        void *request)
{
    struct world *world = context;

    wait_for_answer(world, done, request);
    if (is_writing(world))
        note_pieces(world_exec(world, pieces->exec), pieces, count);
}

static void note_end(void *context, const struct recorder_end *what, recorder_done done, void *request)
{
    struct world *world = context;

    wait_for_answer(world, done, request);
    if (!is_writing(world))
        return;
    struct noted_exec *note = world_exec(world, what->exec);
    note_pieces(note, what->pieces, what->piece_count);
    note->is_whole = note->is_whole && !note->has_ended;
    note->has_ended = true;
    note->result = *what->result;
}

static void keeper_turn(struct world *world);

static void keeper_timer_fired(uv_timer_t *timer)
{
    keeper_turn(timer->data);
}

static void keeper_turn(struct world *world)
{
    struct error err = {0};

    if (keeper_dispatch(world->keeper, &err) <= 0) {
        (void)fprintf(stderr, "# the keeper ended the conversation: %s\n", err.message);
        (void)uv_poll_stop(&world->keeper_poll);
        return;
    }
    int wait_ms = keeper_wait_ms(world->keeper);
    if (wait_ms >= 0)
        (void)uv_timer_start(&world->keeper_timer, keeper_timer_fired, (uint64_t)wait_ms, 0);
}

static void keeper_ready(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    keeper_turn(poll->data);
}

static void state_path(char path[64])
{
    (void)snprintf(path, 64, "/tmp/hutch-engine-%d", (int)getpid());
}

static int start_keeper(struct world *world, const char *init, struct error *err)
{
    struct keeper_options options = {
        .zygote_fd = -1, .zygote_pidfd = -1, .airlock_fd = -1, .id_first = KEEPER_ID_FIRST, .id_last = KEEPER_ID_LAST};
    char state[64];
    int ends[2];

    state_path(state);
    options.state = state;
    world->init_fd = open(init, O_PATH | O_CLOEXEC);
    if (world->init_fd < 0)
        return error_errno(err, "opening %s", init);
    int r = zygote_start(false, &options.zygote_fd, &options.zygote_pidfd, err);
    if (r < 0)
        return r;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return error_errno(err, "making a socket pair");
    world->client_fd = ends[0];
    world->keeper_end = ends[1];
    options.client_fd = ends[1];
    options.init_fd = world->init_fd;
    r = keeper_new(&options, &world->keeper, err);
    (void)uv_poll_init(world->loop, &world->keeper_poll, r == 0 ? keeper_fd(world->keeper) : ends[1]);
    world->keeper_poll.data = world;
    (void)uv_timer_init(world->loop, &world->keeper_timer);
    world->keeper_timer.data = world;
    if (r == 0)
        (void)uv_poll_start(&world->keeper_poll, UV_READABLE, keeper_ready);
    return r;
}

static int start_engine(struct world *world, struct error *err)
{
    world->options.loop = world->loop;
    world->options.recorder = &world->recorder;
    world->options.start = ++world->start;
    world->options.keeper_fd = fcntl(world->client_fd, F_DUPFD_CLOEXEC, 0);
    return engine_new(&world->options, &world->engine, err);
}

int world_start(struct world *world, const char *init, const struct engine_options *options, struct error *err)
{
    *world = (struct world){.loop = uv_default_loop(), .client_fd = -1, .keeper_end = -1, .init_fd = -1};
    world->options = options != NULL ? *options
                                     : (struct engine_options){.sandboxes_max = 64,
                                                               .execs_max = 256,
                                                               .result_keep_ms = 60000,
                                                               .result_bytes_max = 64 * MIB,
                                                               .stall_ms = 1000};
    world->recorder = (struct recorder){
        .context = world, .sandbox = note_sandbox, .exec = note_exec, .output = note_output, .end = note_end};
    (void)uv_idle_init(world->loop, &world->idle);
    world->idle.data = world;
    (void)uv_timer_init(world->loop, &world->alarm);
    world->alarm.data = world;
    int r = start_keeper(world, init, err);
    return r < 0 ? r : start_engine(world, err);
}

static void is_late(uv_timer_t *timer)
{
    ((struct world *)timer->data)->is_late = true;
}

void world_begin_waiting(struct world *world)
{
    world->is_late = false;
    (void)uv_timer_start(&world->alarm, is_late, WORLD_WAIT_MS, 0);
}

bool world_turn(struct world *world)
{
    (void)uv_run(world->loop, UV_RUN_ONCE);
    return !world->is_late;
}

void world_pass(struct world *world, uint64_t ms)
{
    world->is_late = false;
    (void)uv_timer_start(&world->alarm, is_late, ms, 0);
    while (!world->is_late)
        (void)uv_run(world->loop, UV_RUN_ONCE);
}

static void note_closed(void *data)
{
    *(bool *)data = true;
}

static void close_engine(struct world *world)
{
    bool closed = false;

    engine_close(world->engine, note_closed, &closed);
    world->engine = NULL;
    if (!WORLD_UNTIL(world, closed))
        (void)fprintf(stderr, "# the engine does not close\n");
}

void world_stop(struct world *world)
{
    char state[64];

    if (world->engine != NULL)
        close_engine(world);
    uv_close((uv_handle_t *)&world->keeper_poll, NULL);
    uv_close((uv_handle_t *)&world->keeper_timer, NULL);
    uv_close((uv_handle_t *)&world->alarm, NULL);
    uv_close((uv_handle_t *)&world->idle, NULL);
    (void)uv_run(world->loop, UV_RUN_DEFAULT);
    keeper_free(world->keeper);
    state_path(state);
    tree_remove(AT_FDCWD, state);
    close_fd(&world->client_fd);
    close_fd(&world->keeper_end);
    close_fd(&world->init_fd);
    for (size_t i = 0; i < world->exec_count; i++)
        buf_release(&world->execs[i].output);
    if (uv_loop_close(world->loop) != 0)
        (void)fprintf(stderr, "# a handle was left open\n");
}

static bool is_guest(const struct world *world, int fd)
{
    int type = 0;
    socklen_t size = sizeof type;
    struct sockaddr_storage address;
    socklen_t address_size = sizeof address;

    /* Three of ours are known; the zygote's is not, but it is the only one that was there before the first engine. */
    return fd > world->keeper_end && fd != world->options.keeper_fd &&
           getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET &&
           getpeername(fd, (struct sockaddr *)&address, &address_size) == 0;
}

size_t world_guest_fds(const struct world *world, int *fds, size_t size)
{
    size_t count = 0;

    for (int fd = 0; fd < 4096; fd++) {
        if (!is_guest(world, fd))
            continue;
        if (count < size)
            fds[count] = fd;
        count++;
    }
    return count;
}

/* Everything that the notes say is live; one sandbox at most. */
static int adopt(struct world *world, int guest_fd, struct error *err)
{
    struct sandbox_settings settings = world_settings("alice");
    struct sandbox *sandbox = NULL;
    const struct noted_sandbox *note = &world->sandboxes[world->sandbox_count - 1];
    uint64_t last_channel = 0;

    for (size_t i = 0; i < world->exec_count; i++)
        last_channel = world->execs[i].channel > last_channel ? world->execs[i].channel : last_channel;
    struct sandbox_adopted adopted = {.id = note->id,
                                      .number = note->number,
                                      .state = note->state,
                                      .settings = &settings,
                                      .created_ms = note->created_ms,
                                      .last_channel = last_channel,
                                      .guest_fd = guest_fd};
    int r = sandbox_adopt(world->engine, &adopted, &sandbox, err);
    world_pass(world, 20); /* what init says meanwhile waits until everything is adopted */
    for (size_t i = 0; r == 0 && i < world->exec_count; i++) {
        struct noted_exec *exec = &world->execs[i];
        struct exec_settings shell = {
            .shell = "", .mode = exec->mode, .has_stdin = exec->has_stdin, .stdout_cap = exec->cap};
        /* As much as is kept; the streams do not matter to what follows. */
        size_t kept = exec->output.length < 4096 ? exec->output.length : 4096;
        struct exec_piece piece = {EXEC_STDOUT, exec->output.data + exec->output.length - kept, kept};
        struct exec_adopted what = {.id = exec->id,
                                    .owner = "alice",
                                    .channel = exec->channel,
                                    .settings = &shell,
                                    .started_ms = exec->started_ms,
                                    .seq_first = exec->output.length - kept,
                                    .offsets = {exec->offsets[0], exec->offsets[1]},
                                    .pieces = &piece,
                                    .piece_count = kept > 0};
        struct exec *made;
        if (!exec->has_ended)
            r = exec_adopt(sandbox, &what, &made, err);
    }
    return r;
}

int world_crash(struct world *world, struct error *err)
{
    int guest_fd = -1;

    if (world_guest_fds(world, &guest_fd, 1) != 1)
        return error_set(err, ERROR_INVALID, 0, "there is not exactly one guest link");
    guest_fd = fcntl(guest_fd, F_DUPFD_CLOEXEC, 0);
    /* What was not answered by now was not written: it was noted at once, so only what comes from now on is lost. */
    world->is_stuck = true;
    world_pass(world, 20);
    world->is_stuck = false;
    world->failure = -EIO;
    (void)uv_idle_start(&world->idle, answer_all);
    close_engine(world);
    world->failure = 0;
    int r = start_engine(world, err);
    if (r == 0)
        r = adopt(world, guest_fd, err);
    if (r == 0)
        engine_go(world->engine);
    return r;
}
