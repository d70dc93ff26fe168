/*
 * What callers do with an exec that there is: find it, look at it, type into it, signal it, let it go.
 */
#include "gateway/engine/internal.h"

#include "base/cleanup.h"

#include <string.h>

enum { SIGNAL_MAX = 64 };

static int not_running(const struct exec *exec, struct error *err)
{
    return error_set(err, ERROR_INVALID, ESHUTDOWN, "exec %s has ended", exec->id);
}

struct exec *exec_find(struct engine *engine, const char *id, const char *owner)
{
    struct table_entry *entry = NULL;
    uint64_t hash = table_hash_text(id);

    while ((entry = table_next(&engine->execs, hash, entry)) != NULL) {
        struct exec *exec = TABLE_OWNER(struct exec, by_id, entry);
        if (strcmp(exec->id, id) == 0)
            return owner == NULL || strcmp(exec->owner, owner) == 0 ? exec : NULL;
    }
    return NULL;
}

struct exec *exec_next_of(struct engine *engine, const char *sandbox, const struct exec *current)
{
    struct exec *exec = current == NULL ? engine->exec_oldest : current->newer;

    while (exec != NULL && strcmp(exec->sandbox_id, sandbox) != 0)
        exec = exec->newer;
    return exec;
}

void exec_get(const struct exec *exec, struct exec_info *ret_info)
{
    *ret_info = (struct exec_info){
        .id = exec->id,
        .sandbox = exec->sandbox_id,
        .owner = exec->owner,
        .agent = exec->agent,
        .extra = exec->extra,
        .state = exec->state,
        .mode = exec->mode,
        .has_terminal = exec->has_terminal,
        .has_stdin = exec->has_stdin,
        .is_stdin_known = !exec->channel.is_input_unknown,
        .stdin_ended = exec->stdin_ended,
        .is_stdin_closed = exec->channel.stdin_closed && !exec->channel.is_input_unknown,
        .stdin_next = exec->channel.sent,
        .started_ms = exec->started_ms,
        .seq_first = exec->ring.first,
        .seq_next = exec->recorded,
        .result = exec->state == EXEC_ENDED && !exec->is_unrecorded ? &exec->result : NULL,
    };
}

static int write_some(struct exec *exec, const void *data, size_t length, bool end, size_t *ret_taken,
                      struct error *err)
{
    struct guest_channel *channel = &exec->channel;
    size_t taken = 0;

    if (exec->state != EXEC_RUNNING || exec->sandbox == NULL)
        return not_running(exec, err);
    if (!exec->has_stdin || exec->stdin_ended)
        return error_set(err, ERROR_INVALID, EPIPE, "the standard input of exec %s is not open", exec->id);
    if (channel->is_input_unknown) {
        *ret_taken = 0;
        return 0;
    }
    if (channel->stdin_closed) {
        /* Nobody reads it, as with a pipe whose reader has gone. */
        channel->sent += length;
        exec->stdin_ended = end;
        *ret_taken = length;
        return 0;
    }
    /* What waits already is enough: the rest comes when the link takes it. */
    while (exec->sandbox->link.outbox.first == NULL && (taken < length || (end && !exec->stdin_ended))) {
        size_t room = guest_stdin_room(channel);
        size_t part = length - taken < room ? length - taken : room;
        part = part < WIRE_DATA_MAX ? part : WIRE_DATA_MAX;
        if (part == 0 && taken < length)
            break;
        bool is_end = end && taken + part == length;
        struct wire_message message = {
            .type = WIRE_STDIN,
            .stdin_data = {.channel = channel->id,
                           .offset = channel->sent,
                           .end = is_end,
                           .data = {.data = (const uint8_t *)data + taken, .length = (uint32_t)part}}};
        int r = sandbox_say(exec->sandbox, &message);
        if (r < 0)
            return error_set(err, ERROR_SYSTEM, -r, "writing to exec %s", exec->id);
        channel->sent += part;
        taken += part;
        exec->stdin_ended = is_end;
    }
    *ret_taken = taken;
    return 0;
}

int exec_write(struct exec *exec, const void *data, size_t length, bool end, size_t *ret_taken, struct error *err)
{
    if (exec->input != NULL)
        return error_set(err, ERROR_INVALID, EBUSY, "exec %s is still being given its first input", exec->id);
    return write_some(exec, data, length, end, ret_taken, err);
}

bool exec_has_input(const struct exec *exec)
{
    return exec->state != EXEC_RUNNING || exec->sandbox == NULL || exec->sandbox->link.outbox.first == NULL;
}

bool exec_is_written(const struct exec *exec)
{
    return exec->input != NULL || exec->room != NULL;
}

/*
 * An exec that reads no more, or has ended, needs no more input: its result says what became of it. All the bytes are
 * not all of it: without the end of it the command would wait for ever.
 */
void exec_feed(struct exec *exec)
{
    struct error err;
    size_t taken = 0;

    if (exec->input == NULL)
        return;
    int r = write_some(exec, exec->input + exec->input_at, exec->input_length - exec->input_at, true, &taken, &err);
    exec->input_at += taken;
    if (r < 0 || exec->stdin_ended) {
        free(exec->input);
        exec->input = NULL;
    }
}

void exec_on_room(struct exec *exec, exec_done room, void *data)
{
    exec->room = room;
    exec->room_data = data;
}

void exec_heard_room(struct exec *exec)
{
    exec_feed(exec);
    if (exec->input != NULL)
        return;
    exec_done room = TAKE_PTR(exec->room);

    if (room != NULL)
        room(exec->room_data, exec, NULL);
}

static void skip_gap(struct exec *exec, size_t stream, uint64_t gap)
{
    ring_skip(&exec->ring, stream, gap);
    exec->recorded = exec->recording = exec->stored = exec->seq_at_tick = exec->ring.next;
    exec->recorded_offsets[stream] += gap;
    exec->recording_offsets[stream] += gap;
}

/*
 * Recorded is what came before it, and nothing else is under way: init sends what it was asked for after it has said
 * where that starts. From one that does otherwise the spooler may be reading, and nothing may be written there.
 */
void exec_heard_gaps(struct exec *exec, const uint64_t gaps[EXEC_STREAMS])
{
    if (gaps[0] == 0 && gaps[1] == 0)
        return;
    exec_record_output(exec);
    if (exec->is_output_recording && exec->is_spooling) {
        exec->is_unrecorded = true;
        exec_kill(exec);
        return;
    }
    for (size_t i = 0; i < EXEC_STREAMS; i++) {
        if (gaps[i] > 0)
            skip_gap(exec, i, gaps[i]);
    }
}

void exec_heard_resumed(struct exec *exec, const struct wire_resumed *resumed)
{
    exec->stdin_ended = resumed->ended != 0;
    exec_heard_room(exec);
}

/* Somebody may wait for no more than that: what was written has gone out. */
void exec_link_drained(struct exec *exec)
{
    exec_heard_room(exec);
}

int exec_signal(struct exec *exec, uint32_t number, uint8_t scope, struct error *err)
{
    struct wire_message message = {.type = WIRE_SIGNAL,
                                   .signal = {.channel = exec->channel.id, .signal = number, .scope = scope}};

    if (number < 1 || number > SIGNAL_MAX || scope > WIRE_SCOPE_TREE)
        return error_set(err, ERROR_INVALID, 0, "there is no signal %u", number);
    if (exec->state != EXEC_RUNNING || exec->sandbox == NULL)
        return not_running(exec, err);
    int r = sandbox_say(exec->sandbox, &message);
    return r < 0 ? error_set(err, ERROR_SYSTEM, -r, "signalling exec %s", exec->id) : 0;
}

int exec_resize(struct exec *exec, uint16_t rows, uint16_t columns, struct error *err)
{
    struct wire_message message = {.type = WIRE_RESIZE,
                                   .resize = {.channel = exec->channel.id, .rows = rows, .columns = columns}};

    if (!exec->has_terminal)
        return error_set(err, ERROR_INVALID, ENOTTY, "exec %s has no terminal", exec->id);
    if (exec->state != EXEC_RUNNING || exec->sandbox == NULL)
        return not_running(exec, err);
    int r = sandbox_say(exec->sandbox, &message);
    return r < 0 ? error_set(err, ERROR_SYSTEM, -r, "resizing exec %s", exec->id) : 0;
}

void exec_detach(struct exec *exec)
{
    exec->is_attached = false;
}

void exec_forget(struct exec *exec)
{
    exec_kill(exec);
    exec->wants_forgetting = true;
    if (exec->state == EXEC_ENDED)
        exec_unlist(exec);
}
