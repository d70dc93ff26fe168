/*
 * An exec's output on its way: from init into the ring, from there to the recorder (exec_record.c), and only then to
 * followers and, as an acknowledgement, back to init. So at most a window of each stream is not recorded, and init has
 * it. Only what can't be recorded at all is acknowledged without.
 */
#include "gateway/engine/internal.h"

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
    /* What can't be recorded is of use to nobody, and its command is being killed. */
    const uint64_t *done = exec->is_unrecorded ? channel->received : exec->recorded_offsets;

    exec->is_held = exec->state == EXEC_RUNNING && !exec->is_unrecorded && must_hold(exec);
    if (exec->state != EXEC_RUNNING || exec->sandbox == NULL || exec->is_held ||
        (done[0] - channel->acked[0] < ACK_DUE && done[1] - channel->acked[1] < ACK_DUE))
        return;
    memcpy(channel->acked, done, sizeof channel->acked);
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
    exec_give_back(exec);
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
    /* It may be forgotten meanwhile, and is there all the same. */
    if (exec->state == EXEC_ENDED && exec->followers == NULL)
        exec->share = budget_note(&exec->engine->budget, ring_size(&exec->ring));
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
