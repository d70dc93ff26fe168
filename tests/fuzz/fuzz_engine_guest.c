/*
 * Frames as a hostile init would send them, through the engine's side of the guest link: the protocol, and behind it
 * what takes the output: a ring that collects, one that keeps the newest, a terminal's, and the answers to two
 * questions about files; and a command that an earlier gateway had started. The first frame it may not send ends it.
 */
#include "fuzz.h"
#include "gateway/engine/guest.h"
#include "gateway/engine/ring.h"
#include "wire/answer.h"

#include <string.h>

enum { COLLECT, STREAM, TERMINAL, LISTING, READING, RESUMED, CHANNELS };
enum { CAP = 5000, STREAM_CAP = 512 << 10, SENT = 100000, ACK_DUE = WIRE_WINDOW / 4 };

struct side {
    struct guest guest;
    struct guest_channel channels[CHANNELS];
    struct ring rings[CHANNELS];
    struct answer answers[CHANNELS];
    bool is_open[CHANNELS];
};

static bool is_file(size_t index)
{
    return index == LISTING || index == READING;
}

static void open_channels(struct side *side)
{
    const struct wire_file questions[CHANNELS] = {
        [LISTING] = {.operation = WIRE_FILE_LIST, .flags = WIRE_FILE_RECURSIVE},
        [READING] = {.operation = WIRE_FILE_READ, .length = 1 << 20},
    };

    guest_init(&side->guest, 1);
    for (size_t i = 0; i < CHANNELS; i++) {
        side->channels[i] = (struct guest_channel){.id = i + 1,
                                                   .owner = side,
                                                   .has_errors = i == COLLECT || i == STREAM,
                                                   .is_file = is_file(i),
                                                   .caps = {i == COLLECT ? CAP : 0, i == COLLECT ? CAP : 0},
                                                   .sent = i == RESUMED ? 0 : SENT,
                                                   .is_resumed = i == RESUMED,
                                                   .is_input_unknown = i == RESUMED};
        side->is_open[i] = true;
        guest_open(&side->guest, &side->channels[i]);
        ring_init(&side->rings[i], i == COLLECT ? 2 * CAP : STREAM_CAP);
        if (is_file(i))
            answer_init(&side->answers[i], &questions[i]);
    }
}

/* False: it is to be ended. What is acknowledged was recorded, so the ring may let it go. */
static bool take(struct side *side, size_t index, size_t stream, struct wire_bytes data)
{
    struct ring *ring = &side->rings[index];
    struct answer_part part;
    int r;

    if (!is_file(index)) {
        uint64_t pinned = side->channels[index].acked[0] + side->channels[index].acked[1];
        MUST(ring_append(ring, stream, data.data, data.length, pinned) == 0);
        return true;
    }
    while ((r = answer_next(&side->answers[index], &data, &part)) > 0)
        continue;
    return r == 0;
}

static void check(const struct side *side)
{
    size_t open = 0;

    for (size_t i = 0; i < CHANNELS; i++) {
        const struct guest_channel *channel = &side->channels[i];
        const struct ring *ring = &side->rings[i];
        struct ring_piece piece;
        open += side->is_open[i];
        for (size_t stream = 0; stream < GUEST_STREAMS; stream++) {
            MUST(channel->acked[stream] <= channel->received[stream]);
            MUST(channel->received[stream] - channel->acked[stream] <= WIRE_WINDOW);
            MUST(channel->caps[stream] == 0 || channel->received[stream] <= channel->caps[stream]);
            MUST(is_file(i) || ring->offsets[stream] == channel->received[stream]);
        }
        MUST(channel->taken <= channel->sent && guest_stdin_room(channel) <= WIRE_WINDOW);
        MUST(ring->next - ring->first <= ring->cap && ring->room <= ring->cap);
        for (uint64_t seq = ring->first; ring_read(ring, seq, UINT64_MAX, &piece) > 0; seq = piece.seq + piece.length)
            MUST(piece.seq == seq && piece.length > 0 && piece.offset < channel->received[piece.stream]);
    }
    MUST(side->guest.channel_count == open);
}

static void acknowledge(struct guest_channel *channel)
{
    if (channel->received[0] - channel->acked[0] >= ACK_DUE || channel->received[1] - channel->acked[1] >= ACK_DUE)
        memcpy(channel->acked, channel->received, sizeof channel->acked);
}

static bool handle(struct side *side, const struct guest_event *event)
{
    if (event->kind != GUEST_OUTPUT && event->kind != GUEST_EXIT && event->kind != GUEST_RESUMED)
        return true;
    size_t index = (size_t)(event->channel - side->channels);
    for (size_t i = 0; event->kind == GUEST_RESUMED && i < GUEST_STREAMS; i++) {
        if (event->gaps[i] > 0)
            ring_skip(&side->rings[index], i, event->gaps[i]);
    }
    if (event->kind == GUEST_RESUMED)
        return true;
    if (event->kind == GUEST_OUTPUT) {
        bool is_sound = take(side, index, event->stream, event->data);
        acknowledge(event->channel);
        return is_sound;
    }
    side->is_open[index] = false;
    return take(side, index, 0, event->exit->stdout_tail) && take(side, index, 1, event->exit->stderr_tail) &&
           (!is_file(index) || answer_end(&side->answers[index], event->exit) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct side side;
    struct wire_message message;
    struct guest_event event;
    int length;

    open_channels(&side);
    while ((length = wire_frame_length(data, size)) > 0 && (size_t)length <= size) {
        if (wire_decode(data, (size_t)length, &message) < 0 || guest_hear(&side.guest, &message, &event) < 0 ||
            !handle(&side, &event))
            break;
        check(&side);
        data += length;
        size -= (size_t)length;
    }
    for (size_t i = 0; i < CHANNELS; i++)
        ring_release(&side.rings[i]);
    return 0;
}
