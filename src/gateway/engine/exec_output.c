/*
 * An exec's output on its way: from init into the ring, from there to the recorder, and only then to followers and, as
 * an acknowledgement, back to init. So at most a window of each stream is not recorded, and init has it.
 */
#include "gateway/engine/internal.h"

#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

enum { ACK_DUE = WIRE_WINDOW / 16 };

static void remember_last(struct exec *exec, size_t stream, struct wire_bytes data)
{
    uint8_t *last = exec->last[stream];
    size_t size = sizeof exec->last[stream];
    size_t length = data.length < size ? data.length : size;

    memmove(last, last + length, size - length);
    memcpy(last + size - length, data.data + data.length - length, length);
}

int exec_take(struct exec *exec, size_t stream, struct wire_bytes data)
{
    if (data.length == 0 || exec->is_unrecorded)
        return 0;
    remember_last(exec, stream, data);
    return ring_append(&exec->ring, stream, data.data, data.length, exec->recorded);
}

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

static void output_is_recorded(struct record *record, int status)
{
    struct exec *exec = record->exec;

    exec->is_output_recording = false;
    if (status < 0) {
        exec->is_unrecorded = true;
        exec_kill(exec);
        exec_tell(exec);
        return;
    }
    exec->recorded = record->seq;
    memcpy(exec->recorded_offsets, exec->recording_offsets, sizeof exec->recorded_offsets);
    exec_record_output(exec);
    exec_tell(exec);
    exec_acknowledge(exec);
}

/* All that has come since the last time, in one go; the last piece brings the answer. */
static void record_pieces(struct exec *exec, struct record *record)
{
    const struct recorder *recorder = exec->engine->recorder;
    struct ring_piece piece;

    while (ring_read(&exec->ring, exec->recording, UINT64_MAX, &piece) > 0) {
        struct recorder_output output = {.exec = exec->id,
                                         .seq = piece.seq,
                                         .stream = (enum exec_stream)piece.stream,
                                         .offset = piece.offset,
                                         .data = piece.data,
                                         .length = piece.length,
                                         .keep_from = exec->ring.first};
        exec->recording = piece.seq + piece.length;
        bool is_last = record != NULL && exec->recording == exec->ring.next;
        recorder->output(recorder->context, &output, is_last ? record_finished : NULL, is_last ? record : NULL);
    }
    memcpy(exec->recording_offsets, exec->ring.offsets, sizeof exec->recording_offsets);
}

void exec_record_output(struct exec *exec)
{
    if (exec->is_output_recording || exec->is_unrecorded || exec->recording == exec->ring.next)
        return;
    struct record *record = record_new(exec->engine, NULL, exec, output_is_recorded);
    if (record == NULL) {
        exec->is_unrecorded = true;
        exec_kill(exec);
        return;
    }
    record->seq = exec->ring.next;
    exec->is_output_recording = true;
    record_pieces(exec, record);
}

static void end_is_recorded(struct record *record, int status)
{
    struct exec *exec = record->exec;

    exec->is_unrecorded = exec->is_unrecorded || status < 0;
    if (status == 0)
        exec->recorded = exec->recording;
    exec_finished(exec);
}

void exec_record_end(struct exec *exec)
{
    const struct recorder *recorder = exec->engine->recorder;

    finish_result(exec);
    /* What was never recorded as started has no end. */
    bool has_start = !exec->is_unrecorded || exec->is_recorded;
    struct record *record = has_start ? record_new(exec->engine, NULL, exec, end_is_recorded) : NULL;
    if (record == NULL) {
        exec->is_unrecorded = true;
        exec_finished(exec);
        return;
    }
    if (!exec->is_unrecorded)
        record_pieces(exec, NULL);
    struct recorder_end end = {.exec = exec->id, .result = &exec->result, .ended_ms = engine_wall_ms()};
    recorder->end(recorder->context, &end, record_finished, record);
}

/* The follower that is furthest behind, of those the command has to wait for. */
static const struct exec_follower *slowest(const struct exec *exec)
{
    const struct exec_follower *found = NULL;

    for (const struct exec_follower *follower = exec->followers; follower != NULL; follower = follower->next) {
        if (!follower->only_end && !follower->is_dropped && !follower->is_free &&
            (found == NULL || follower->seq < found->seq))
            found = follower;
    }
    return found;
}

/* What a follower has not taken is not to be overwritten by the two windows that may still come. */
static bool must_hold(const struct exec *exec)
{
    const struct exec_follower *follower = exec->mode == EXEC_STREAM ? slowest(exec) : NULL;

    return follower != NULL && exec->ring.next - follower->seq > exec->ring.cap - (uint64_t)EXEC_STREAMS * WIRE_WINDOW;
}

void exec_acknowledge(struct exec *exec)
{
    struct guest_channel *channel = &exec->channel;

    exec->is_held = exec->state == EXEC_RUNNING && must_hold(exec);
    if (exec->state != EXEC_RUNNING || exec->sandbox == NULL || exec->is_held ||
        (exec->recorded_offsets[0] - channel->acked[0] < ACK_DUE &&
         exec->recorded_offsets[1] - channel->acked[1] < ACK_DUE))
        return;
    memcpy(channel->acked, exec->recorded_offsets, sizeof channel->acked);
    struct wire_message message = {
        .type = WIRE_ACK,
        .ack = {.channel = channel->id, .stdout_offset = channel->acked[0], .stderr_offset = channel->acked[1]}};
    ignore_result(sandbox_say(exec->sandbox, &message));
}

static void free_follower(struct exec_follower *follower)
{
    struct exec *exec = follower->exec;
    struct exec_follower **at = &exec->followers;

    while (*at != follower)
        at = &(*at)->next;
    *at = follower->next;
    free(follower);
    if (!exec->engine->is_closing && exec->followers == NULL && exec->is_attached)
        exec_kill(exec);
    if (exec->is_held)
        exec_acknowledge(exec);
    exec_unref(exec);
}

void exec_tell(struct exec *exec)
{
    struct exec_follower *next;

    exec->refs++;
    for (struct exec_follower *follower = exec->followers; follower != NULL; follower = next) {
        bool is_of_use = !follower->is_told && !follower->is_free &&
                         (exec->state == EXEC_ENDED || exec->is_unrecorded || follower->is_dropped ||
                          (!follower->only_end && follower->seq < exec->recorded));
        if (is_of_use) {
            follower->is_told = true;
            follower->news(follower->data, follower);
            follower->is_told = false;
        }
        next = follower->next;
        if (is_of_use && follower->is_free)
            free_follower(follower);
    }
    exec_unref(exec);
}

void exec_drop_stalled(struct exec *exec, uint64_t now)
{
    bool has_dropped = false;

    for (struct exec_follower *follower = exec->followers; follower != NULL; follower = follower->next) {
        if (!follower->only_end && follower->seq < exec->recorded &&
            now - follower->progress_at > exec->engine->options.stall_ms)
            has_dropped = follower->is_dropped = true;
    }
    if (!has_dropped)
        return;
    exec_acknowledge(exec);
    exec_tell(exec);
}

int exec_follow(struct exec *exec, const struct exec_follow_options *options, exec_news news, void *data,
                struct exec_follower **ret_follower, struct error *err)
{
    if (!options->only_end && options->after > exec->recorded)
        return error_set(err, ERROR_INVALID, 0, "there is no output after %llu yet: %llu bytes have come",
                         (unsigned long long)options->after, (unsigned long long)exec->recorded);
    struct exec_follower *follower = calloc(1, sizeof *follower);
    if (follower == NULL)
        return error_set(err, ERROR_SYSTEM, ENOMEM, "following an exec");
    *follower = (struct exec_follower){.exec = exec,
                                       .next = exec->followers,
                                       .seq = options->after,
                                       .progress_at = uv_now(exec->engine->loop),
                                       .only_end = options->only_end,
                                       .news = news,
                                       .data = data};
    /* What is not there any more can't hold anything up. */
    if (follower->seq < exec->ring.first)
        follower->seq = exec->ring.first;
    exec->followers = follower;
    exec->refs++;
    *ret_follower = follower;
    return 0;
}

struct exec *exec_follower_exec(struct exec_follower *follower)
{
    return follower->exec;
}

void exec_follower_free(struct exec_follower *follower)
{
    if (follower == NULL)
        return;
    follower->is_free = true;
    if (!follower->is_told)
        free_follower(follower);
}

int exec_read(const struct exec *exec, uint64_t after, struct exec_chunk *ret_chunk)
{
    struct ring_piece piece;

    while (ring_read(&exec->ring, after, exec->recorded, &piece) > 0) {
        uint64_t limit = exec->channel.received[piece.stream] - exec->cut[piece.stream];
        uint64_t left = piece.offset < limit ? limit - piece.offset : 0;
        after = piece.seq + piece.length;
        if (left == 0)
            continue; /* the start of a character whose rest was not kept */
        *ret_chunk = (struct exec_chunk){.seq = piece.seq,
                                         .stream = (enum exec_stream)piece.stream,
                                         .data = piece.data,
                                         .length = piece.length < left ? piece.length : (size_t)left};
        if (ret_chunk->length > EXEC_CHUNK_MAX)
            ret_chunk->length = EXEC_CHUNK_MAX;
        return 1;
    }
    return 0;
}

int exec_follower_next(struct exec_follower *follower, struct exec_chunk *ret_chunk)
{
    struct exec *exec = follower->exec;

    if (follower->is_dropped)
        return -ETIME;
    if (!follower->only_end && exec_read(exec, follower->seq, ret_chunk) > 0) {
        follower->seq = ret_chunk->seq + ret_chunk->length;
        follower->progress_at = uv_now(exec->engine->loop);
        if (exec->is_held)
            exec_acknowledge(exec);
        return 1;
    }
    if (exec->is_unrecorded)
        return -EIO;
    follower->progress_at = uv_now(exec->engine->loop);
    return exec->state == EXEC_ENDED ? -ENODATA : 0;
}
