/*
 * An exec's output and its end on their way into the record.
 *
 * Output is recorded piece by piece, which a database does at some 150 MB/s. What streams faster than SPOOL_RATE goes
 * to a spool instead: it holds what the ring holds, so that a flood costs the database nothing. When it has calmed
 * down, and at the end, the part of it that is still kept is recorded as everything else is, STORE_AT_ONCE at a time,
 * and the spool is removed. `stored` <= `recording`: the difference is in the spool alone.
 */
#include "gateway/engine/internal.h"

#include "base/utf8.h"

#include <string.h>

enum {
    SPOOL_RATE = 256 << 10, /* bytes in a second */
    STORE_AT_ONCE = 1 << 20,
    PIECE_BYTES = 64 << 10,
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

static void give_up(struct exec *exec)
{
    exec->is_unrecorded = true;
    exec_kill(exec);
    exec_tell(exec);
}

/* Recording goes on without it. */
static void refuse_spool(struct exec *exec)
{
    exec->is_spooling = false;
    exec->is_spool_refused = true;
    exec->recording = exec->recorded;
    memcpy(exec->recording_offsets, exec->recorded_offsets, sizeof exec->recording_offsets);
}

static void record_end(struct exec *exec);

static void output_is_recorded(struct record *record, int status)
{
    struct exec *exec = record->exec;

    exec->is_output_recording = false;
    if (status < 0 && record->is_spool) {
        refuse_spool(exec);
    } else if (status < 0) {
        give_up(exec);
    } else {
        raise_to(&exec->recorded, record->seq);
        for (size_t i = 0; i < EXEC_STREAMS; i++)
            raise_to(&exec->recorded_offsets[i], exec->recording_offsets[i]);
    }
    if (exec->is_end_due) {
        record_end(exec);
        return;
    }
    exec_record_output(exec);
    /* First to init: it goes on printing while followers are given what there is. */
    if (status == 0) {
        exec_acknowledge(exec);
        exec_tell(exec);
    }
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

/* What was not recorded yet but for the spool, STORE_AT_ONCE of it; the last piece brings the answer. */
static void store_pieces(struct exec *exec, struct record *record)
{
    const struct recorder *recorder = exec->engine->recorder;
    struct ring_piece piece;

    raise_to(&exec->stored, exec->ring.first);
    uint64_t until = exec->ring.next - exec->stored > STORE_AT_ONCE ? exec->stored + STORE_AT_ONCE : exec->ring.next;
    if (record != NULL)
        record->seq = until;
    while (ring_read(&exec->ring, exec->stored, until, &piece) > 0) {
        piece.length = piece.length < PIECE_BYTES ? piece.length : PIECE_BYTES;
        struct recorder_output output = output_of(exec, &piece);
        exec->stored = piece.seq + piece.length;
        bool is_last = record != NULL && exec->stored == until;
        recorder->output(recorder->context, &output, is_last ? record_finished : NULL, is_last ? record : NULL);
    }
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
        exec->ring.next - exec->seq_at_tick <= SPOOL_RATE || recorder->spool == NULL)
        return;
    exec->spool = ring_settle(&exec->ring) == 0 ? recorder->spool(recorder->context, exec->id, exec->ring.cap) : NULL;
    exec->is_spooling = exec->spool != NULL;
    exec->is_spool_refused = exec->spool == NULL;
}

static void end_spool(struct exec *exec, bool remove)
{
    if (exec->spool == NULL)
        return;
    exec->engine->recorder->spool_end(exec->spool, remove);
    exec->spool = NULL;
}

void exec_record_output(struct exec *exec)
{
    if (exec->is_output_recording || exec->is_unrecorded)
        return;
    start_spooling(exec);
    if ((exec->is_spooling ? exec->recording : exec->stored) == exec->ring.next) {
        if (!exec->is_spooling)
            end_spool(exec, true);
        return;
    }
    struct record *record = record_new(exec->engine, NULL, exec, output_is_recorded);
    if (record == NULL) {
        give_up(exec);
        if (exec->is_end_due)
            record_end(exec);
        return;
    }
    exec->is_output_recording = true;
    if (exec->is_spooling)
        spool_pieces(exec, record);
    else
        store_pieces(exec, record);
}

void exec_check_pace(struct exec *exec)
{
    bool is_slow = exec->ring.next - exec->seq_at_tick <= SPOOL_RATE;

    exec->seq_at_tick = exec->ring.next;
    if (!exec->is_spooling || !is_slow || exec->state != EXEC_RUNNING)
        return;
    exec->is_spooling = false;
    exec_record_output(exec);
}

static void end_is_recorded(struct record *record, int status)
{
    struct exec *exec = record->exec;

    exec->is_unrecorded = exec->is_unrecorded || status < 0;
    if (!exec->is_unrecorded) {
        exec->recorded = exec->ring.next;
        end_spool(exec, true);
    }
    exec_finished(exec);
}

/* What is left of the output goes before it, and with it if that is little. */
static void record_end(struct exec *exec)
{
    const struct recorder *recorder = exec->engine->recorder;
    uint64_t stored = exec->stored > exec->ring.first ? exec->stored : exec->ring.first;

    if (!exec->is_unrecorded && exec->ring.next - stored > STORE_AT_ONCE) {
        exec_record_output(exec);
        return;
    }
    exec->is_end_due = false;
    /* What was never recorded as started has no end. */
    bool has_start = !exec->is_unrecorded || exec->is_recorded;
    struct record *record = has_start ? record_new(exec->engine, NULL, exec, end_is_recorded) : NULL;
    if (record == NULL) {
        exec->is_unrecorded = true;
        exec_finished(exec);
        return;
    }
    if (!exec->is_unrecorded)
        store_pieces(exec, NULL);
    struct recorder_end end = {.exec = exec->id, .result = &exec->result, .ended_ms = engine_wall_ms()};
    recorder->end(recorder->context, &end, record_finished, record);
}

void exec_record_end(struct exec *exec)
{
    finish_result(exec);
    exec->is_spooling = false;
    exec->is_end_due = true;
    record_end(exec);
}
