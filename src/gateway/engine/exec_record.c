/*
 * An exec's output and its end on their way into the record.
 *
 * Output is recorded piece by piece, which a database does at some 150 MB/s. What streams faster than SPOOL_RATE goes
 * to a spool instead: it holds what the ring holds, so that a flood costs the database nothing. When it has calmed
 * down, and at the end, the part of it that is still kept is recorded as everything else is, STORE_AT_ONCE at a time,
 * and the spool is removed. `stored` <= `recording`: the difference is in the spool alone.
 *
 * One record of an exec's output is under way at a time, and the end goes with the last of it: what was refused is as
 * it was before. When too much waits for the recorder, the exec waits in the engine's list, init keeps what is not
 * acknowledged, and the command waits as it would for the reader of a pipe.
 */
#include "gateway/engine/internal.h"

#include "base/cleanup.h"
#include "base/utf8.h"

#include <string.h>

enum {
    SPOOL_RATE = 256 << 10, /* bytes in a second */
    STORE_AT_ONCE = 1 << 20,
    PIECE_BYTES = 64 << 10,
    RECORD_AGAIN_MS = 20, /* how long to wait for room */
};

/* How many bytes at the end of a stream that was cut off are the start of a character. */
static uint8_t broken_end(const struct exec *exec, size_t stream)
{
    uint64_t received = exec->channel.received[stream];
    size_t have = received < sizeof exec->last[stream] ? (size_t)received : sizeof exec->last[stream];
    const uint8_t *last = exec->last[stream] + sizeof exec->last[stream] - have;

    return (uint8_t)(have - utf8_cut(last, have));
}

static void finish_result(struct exec *exec)
{
    struct exec_result *result = &exec->result;

    result->timed_out = exec->is_timed_out;
    result->oom = exec->is_oom;
    result->killed = exec->is_killed;
    result->truncated = exec->mode == EXEC_STREAM && exec->ring.first > 0;
    for (size_t i = 0; i < EXEC_STREAMS; i++) {
        bool is_cut = exec->mode == EXEC_COLLECT && result->totals[i] > exec->channel.received[i];
        exec->cut[i] = is_cut ? broken_end(exec, i) : 0;
        result->kept[i] = exec->channel.received[i] - exec->cut[i];
        result->truncated = result->truncated || is_cut;
    }
}

static void raise_to(uint64_t *value, uint64_t least)
{
    *value = *value > least ? *value : least;
}

static void end_spool(struct exec *exec, bool remove)
{
    if (exec->spool == NULL)
        return;
    exec->engine->recorder->spool_end(exec->spool, remove);
    exec->spool = NULL;
}

/* Nobody can read its output any more, and it must still be able to end: init gets rid of all that it says. */
void exec_give_up(struct exec *exec)
{
    exec->is_unrecorded = true;
    exec->is_spooling = false;
    if (!exec->is_output_recording)
        end_spool(exec, true);
    exec_kill(exec);
    exec_acknowledge(exec);
    exec_tell(exec);
}

/* What was asked of the recorder last has not happened. */
static void take_back(struct exec *exec, const struct record *record)
{
    exec->recording = exec->recorded;
    memcpy(exec->recording_offsets, exec->recorded_offsets, sizeof exec->recording_offsets);
    if (!record->is_spool)
        exec->stored = record->from;
}

static void go_on(struct exec *exec);

static void record_again(uv_timer_t *timer)
{
    struct engine *engine = timer->data;
    struct exec *exec = TAKE_PTR(engine->waiting_first);

    engine->waiting_end = &engine->waiting_first;
    for (struct exec *next; exec != NULL; exec = next) {
        next = TAKE_PTR(exec->waiting_next);
        exec->is_waiting = false;
        go_on(exec);
        exec_unref(exec);
    }
    engine_check_drained(engine);
}

/* Those that wait have their turns in order. */
static void wait_for_room(struct exec *exec)
{
    struct engine *engine = exec->engine;

    if (exec->is_waiting)
        return;
    exec->is_waiting = true;
    exec->refs++;
    *engine->waiting_end = exec;
    engine->waiting_end = &exec->waiting_next;
    if (!uv_is_active((uv_handle_t *)&engine->again))
        ignore_result(uv_timer_start(&engine->again, record_again, RECORD_AGAIN_MS, 0));
}

void exec_abandon_waiting(struct engine *engine)
{
    struct exec *exec = TAKE_PTR(engine->waiting_first);

    for (struct exec *next; exec != NULL; exec = next) {
        next = exec->waiting_next;
        exec_unlist(exec);
        exec_unref(exec);
    }
}

static bool has_room(const struct exec *exec)
{
    const struct recorder *recorder = exec->engine->recorder;

    return exec->engine->waiting_first == NULL && (recorder->has_room == NULL || recorder->has_room(recorder->context));
}

static void output_is_recorded(struct record *record, int status)
{
    struct exec *exec = record->exec;

    exec->is_output_recording = false;
    if (exec->is_unrecorded) {
        end_spool(exec, true);
    } else if (status < 0) {
        take_back(exec, record);
        if (status == -ENOBUFS) {
            wait_for_room(exec);
            return;
        }
        if (!record->is_spool)
            exec_give_up(exec);
        exec->is_spool_refused = true;
        exec->is_spooling = false;
    } else {
        raise_to(&exec->recorded, record->seq);
        for (size_t i = 0; i < EXEC_STREAMS; i++)
            raise_to(&exec->recorded_offsets[i], exec->recording_offsets[i]);
    }
    go_on(exec);
    /* First to init: it goes on printing while followers are given what there is. */
    if (status == 0) {
        exec_acknowledge(exec);
        exec_tell(exec);
    }
}

static void end_is_recorded(struct record *record, int status)
{
    struct exec *exec = record->exec;

    exec->is_output_recording = false;
    if (status == -ENOBUFS) {
        take_back(exec, record);
        wait_for_room(exec);
        return;
    }
    exec->is_end_due = false;
    exec->is_unrecorded = exec->is_unrecorded || status < 0;
    if (!exec->is_unrecorded) {
        exec->recorded = exec->ring.next;
        end_spool(exec, true);
    }
    exec_finished(exec);
}

static struct recorder_output output_of(struct exec *exec, const struct ring_piece *piece)
{
    raise_to(&exec->recording, piece->seq + piece->length);
    raise_to(&exec->recording_offsets[piece->stream], piece->offset + piece->length);
    return (struct recorder_output){.exec = exec->id,
                                    .seq = piece->seq,
                                    .stream = (enum exec_stream)piece->stream,
                                    .offset = piece->offset,
                                    .data = piece->data,
                                    .length = piece->length,
                                    .keep_from = exec->ring.first};
}

/* What was not recorded yet but for the spool, STORE_AT_ONCE of it, and the end when that is all. */
static void store_pieces(struct exec *exec, struct record *record)
{
    const struct recorder *recorder = exec->engine->recorder;
    struct recorder_output outputs[RECORDER_PIECES];
    struct ring_piece piece;
    size_t count = 0;

    raise_to(&exec->stored, exec->ring.first);
    record->from = exec->stored;
    uint64_t until = exec->is_unrecorded ? exec->stored : record->from + STORE_AT_ONCE;
    while (count < RECORDER_PIECES && ring_read(&exec->ring, exec->stored, until, &piece) > 0) {
        piece.length = piece.length < PIECE_BYTES ? piece.length : PIECE_BYTES;
        outputs[count++] = output_of(exec, &piece);
        exec->stored = piece.seq + piece.length;
    }
    record->seq = exec->stored;
    if (!exec->is_end_due || (!exec->is_unrecorded && exec->stored < exec->ring.next)) {
        recorder->output(recorder->context, outputs, count, record_finished, record);
        return;
    }
    record->then = end_is_recorded;
    struct recorder_end end = {.exec = exec->id,
                               .result = &exec->result,
                               .ended_ms = engine_wall_ms(),
                               .pieces = outputs,
                               .piece_count = count};
    recorder->end(recorder->context, &end, record_finished, record);
}

/* All that has come since the last time, in one go. The ring keeps it in its place until it is recorded. */
static void spool_pieces(struct exec *exec, struct record *record)
{
    struct recorder_output outputs[RECORDER_PIECES];
    struct ring_piece piece;
    size_t count = 0;

    while (count < RECORDER_PIECES && ring_read(&exec->ring, exec->recording, UINT64_MAX, &piece) > 0)
        outputs[count++] = output_of(exec, &piece);
    record->seq = exec->recording;
    record->is_spool = true;
    exec->engine->recorder->spool_write(exec->spool, outputs, count, record_finished, record);
}

/* Nothing is on its way to the recorder. */
static void start_spooling(struct exec *exec)
{
    const struct recorder *recorder = exec->engine->recorder;

    if (exec->mode != EXEC_STREAM || exec->state != EXEC_RUNNING || exec->spool != NULL || exec->is_spool_refused ||
        exec->is_unrecorded || exec->ring.next - exec->seq_at_tick <= SPOOL_RATE || recorder->spool == NULL)
        return;
    exec->spool = ring_settle(&exec->ring) == 0 ? recorder->spool(recorder->context, exec->id, exec->ring.cap) : NULL;
    exec->is_spooling = exec->spool != NULL;
    exec->is_spool_refused = exec->spool == NULL;
}

/* What was never recorded as started has no end. */
static void finish_unrecorded(struct exec *exec)
{
    exec->is_unrecorded = true;
    exec->is_end_due = false;
    end_spool(exec, true);
    exec_finished(exec);
}

static bool has_output(const struct exec *exec)
{
    return !exec->is_unrecorded && (exec->is_spooling ? exec->recording : exec->stored) < exec->ring.next;
}

/* Whatever is due and not under way: the next of the output, or the end. */
static void go_on(struct exec *exec)
{
    if (exec->is_output_recording)
        return;
    start_spooling(exec);
    if (!has_output(exec) && !exec->is_end_due) {
        if (!exec->is_spooling)
            end_spool(exec, true);
        return;
    }
    if (has_output(exec) && !exec->is_spooling && !has_room(exec)) {
        wait_for_room(exec);
        return;
    }
    bool has_start = !exec->is_unrecorded || exec->is_recorded;
    struct record *record = has_start ? record_new(exec->engine, NULL, exec, output_is_recorded) : NULL;
    if (record == NULL && exec->is_end_due) {
        finish_unrecorded(exec);
    } else if (record == NULL) {
        exec_give_up(exec);
    } else {
        exec->is_output_recording = true;
        if (exec->is_spooling)
            spool_pieces(exec, record);
        else
            store_pieces(exec, record);
    }
}

void exec_record_output(struct exec *exec)
{
    go_on(exec);
}

void exec_check_pace(struct exec *exec)
{
    bool is_slow = exec->ring.next - exec->seq_at_tick <= SPOOL_RATE;

    exec->seq_at_tick = exec->ring.next;
    if (!exec->is_spooling || !is_slow || exec->state != EXEC_RUNNING)
        return;
    exec->is_spooling = false;
    go_on(exec);
}

void exec_record_end(struct exec *exec)
{
    finish_result(exec);
    exec->is_spooling = false;
    exec->is_end_due = true;
    go_on(exec);
}
