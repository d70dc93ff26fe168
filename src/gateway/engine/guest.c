#include "gateway/engine/guest.h"

enum { ERRNO_MAX = 4095, EXIT_CODE_MAX = 255, SIGNAL_MAX = 64, SKIPPED_MAX = 4 * WIRE_WINDOW };

#define OFFSET_MAX (UINT64_C(1) << 56)
#define FILE_BIT (UINT64_C(1) << 31)

void guest_init(struct guest *guest, uint32_t start)
{
    *guest = (struct guest){.state = WIRE_IN_STARTING, .start = start};
}

uint64_t guest_channel_id(uint32_t start, bool is_file, uint32_t count)
{
    return (uint64_t)start << 32 | (is_file ? FILE_BIT : 0) | (count & (FILE_BIT - 1));
}

void guest_open(struct guest *guest, struct guest_channel *channel)
{
    channel->next = guest->channels;
    guest->channels = channel;
    guest->channel_count++;
}

void guest_close(struct guest *guest, struct guest_channel *channel)
{
    struct guest_channel **at = &guest->channels;

    while (*at != NULL && *at != channel)
        at = &(*at)->next;
    if (*at == NULL)
        return;
    *at = channel->next;
    guest->channel_count--;
}

static struct guest_channel *find(const struct guest *guest, uint64_t id)
{
    struct guest_channel *channel = guest->channels;

    while (channel != NULL && channel->id != id)
        channel = channel->next;
    return channel;
}

static int take(struct guest_channel *channel, size_t stream, uint64_t offset, uint32_t length)
{
    uint64_t received = channel->received[stream];
    uint64_t cap = channel->caps[stream];

    if (offset != received || length > WIRE_WINDOW - (received - channel->acked[stream]) ||
        (cap != 0 && length > cap - received) || (stream == 1 && length > 0 && !channel->has_errors))
        return -EBADMSG;
    channel->received[stream] += length;
    return 0;
}

/*
 * After RESUME first comes what was under way to the gateway before: perhaps not from where its record ends, because
 * that one heard what it could not record any more; then everything from there, perhaps for a second time. What leaves
 * a gap is dropped, what is known is cut off. 1 when nothing is left of it.
 */
static int skip_old(struct guest_channel *channel, size_t stream, uint64_t *offset, struct wire_bytes *data)
{
    uint64_t received = channel->received[stream];
    uint64_t known = *offset < received ? received - *offset : 0;

    if (!channel->is_resumed || *offset == received)
        return 0;
    if (*offset > received || known > data->length)
        known = data->length;
    channel->skipped += known;
    if (channel->skipped > SKIPPED_MAX)
        return -EBADMSG;
    if (known == data->length)
        return 1;
    *offset += known;
    data->data += known;
    data->length -= (uint32_t)known;
    return 0;
}

static int hear_output(struct guest_channel *channel, size_t stream, uint64_t offset, struct wire_bytes data,
                       struct guest_event *event)
{
    int r = data.length == 0 ? 0 : skip_old(channel, stream, &offset, &data);

    if (r != 0) {
        *event = (struct guest_event){.kind = GUEST_OLD};
        return r < 0 ? r : 0;
    }
    *event = (struct guest_event){.kind = GUEST_OUTPUT, .channel = channel, .stream = stream, .data = data};
    /* An empty frame says nothing, and could be said for ever. */
    return data.length == 0 ? -EBADMSG : take(channel, stream, offset, data.length);
}

/* Said to an earlier gateway: it may come once, not for ever. */
static int hear_old(struct guest_channel *channel, struct guest_event *event)
{
    *event = (struct guest_event){.kind = GUEST_OLD};
    return ++channel->skipped > SKIPPED_MAX ? -EBADMSG : 0;
}

static int hear_taken(struct guest_channel *channel, const struct wire_taken *taken, struct guest_event *event)
{
    if (channel->is_input_unknown)
        return hear_old(channel, event);
    if (taken->offset > channel->sent || taken->offset < channel->taken || taken->closed > 1 ||
        (channel->stdin_closed && taken->closed == 0))
        return -EBADMSG;
    channel->taken = taken->offset;
    channel->stdin_closed = taken->closed != 0;
    *event = (struct guest_event){.kind = GUEST_TAKEN, .channel = channel};
    return 0;
}

/*
 * What an earlier gateway acknowledged and has lost, because it was spooled and the spool is gone. Only what is
 * streamed is spooled, and that has no cap. Bounded, so that nothing can overflow; a sandbox needs years to print as
 * much.
 */
static int skip_gap(struct guest_channel *channel, size_t stream, uint64_t offset, uint64_t *ret_gap)
{
    uint64_t received = channel->received[stream];

    *ret_gap = offset > received ? offset - received : 0;
    if (offset <= received)
        return 0;
    if (offset > OFFSET_MAX || channel->caps[stream] != 0 || (stream == 1 && !channel->has_errors))
        return -EBADMSG;
    channel->received[stream] = offset;
    channel->acked[stream] = offset;
    return 0;
}

static int hear_resumed(const struct guest *guest, struct guest_channel *channel, const struct wire_resumed *resumed,
                        struct guest_event *event)
{
    if (channel->is_resumed && resumed->start < guest->start)
        return hear_old(channel, event);
    if (!channel->is_input_unknown || resumed->start != guest->start || resumed->taken > resumed->stdin_offset ||
        resumed->stdin_offset - resumed->taken > WIRE_WINDOW || resumed->closed > 1 || resumed->ended > 1)
        return -EBADMSG;
    *event = (struct guest_event){.kind = GUEST_RESUMED, .channel = channel, .resumed = resumed};
    if (skip_gap(channel, 0, resumed->stdout_offset, &event->gaps[0]) < 0 ||
        skip_gap(channel, 1, resumed->stderr_offset, &event->gaps[1]) < 0)
        return -EBADMSG;
    channel->is_input_unknown = false;
    channel->sent = resumed->stdin_offset;
    channel->taken = resumed->taken;
    channel->stdin_closed = resumed->closed != 0;
    return 0;
}

static bool is_exit(const struct guest_channel *channel, const struct wire_exit *exit)
{
    switch (exit->kind) {
    case WIRE_EXIT_CODE:
        return exit->value <= (channel->is_file ? ERRNO_MAX : EXIT_CODE_MAX);
    case WIRE_EXIT_SIGNAL:
        return exit->value >= 1 && exit->value <= SIGNAL_MAX;
    case WIRE_EXIT_NOT_STARTED:
        return exit->value >= 1 && exit->value <= ERRNO_MAX && exit->failed <= WIRE_FAILED_TERMINAL;
    default:
        return false;
    }
}

/* All that was written has come, or stopped coming at the cap. */
static bool is_total(const struct guest_channel *channel, size_t stream, uint64_t total)
{
    uint64_t received = channel->received[stream];

    return total == received || (total > received && channel->caps[stream] != 0 && received == channel->caps[stream]);
}

/* The end, with a tail that may be known already. One that leaves a gap comes again. */
static int skip_old_exit(struct guest_channel *channel, struct wire_exit *exit)
{
    uint64_t *const offsets[GUEST_STREAMS] = {&exit->stdout_offset, &exit->stderr_offset};
    struct wire_bytes *const tails[GUEST_STREAMS] = {&exit->stdout_tail, &exit->stderr_tail};

    for (size_t i = 0; channel->is_resumed && i < GUEST_STREAMS; i++) {
        if (*offsets[i] > channel->received[i])
            return ++channel->skipped > SKIPPED_MAX ? -EBADMSG : 1;
        int r = skip_old(channel, i, offsets[i], tails[i]);
        if (r < 0)
            return r;
        if (r > 0) {
            *offsets[i] = channel->received[i];
            tails[i]->length = 0;
        }
    }
    return 0;
}

static int hear_exit(struct guest *guest, struct guest_channel *channel, const struct wire_exit *said,
                     struct guest_event *event)
{
    struct wire_exit *exit = &guest->exit;

    *exit = *said;
    *event = (struct guest_event){.kind = GUEST_OLD};
    int r = skip_old_exit(channel, exit);
    if (r > 0)
        return 0;
    guest_close(guest, channel);
    if (r < 0 || !is_exit(channel, exit))
        return -EBADMSG;
    r = take(channel, 0, exit->stdout_offset, exit->stdout_tail.length);
    if (r == 0)
        r = take(channel, 1, exit->stderr_offset, exit->stderr_tail.length);
    if (r < 0 || !is_total(channel, 0, exit->stdout_total) || !is_total(channel, 1, exit->stderr_total))
        return -EBADMSG;
    *event = (struct guest_event){.kind = GUEST_EXIT, .channel = channel, .exit = exit};
    return 0;
}

static int hear_first(struct guest *guest, const struct wire_message *message, struct guest_event *event)
{
    if (message->type == WIRE_SETUP && message->setup.error <= ERRNO_MAX) {
        *event = (struct guest_event){.kind = message->setup.error == 0 ? GUEST_TIMES : GUEST_FAILED,
                                      .setup = &message->setup};
        return 0;
    }
    if (message->type != WIRE_HELLO || message->hello.channels_max == 0)
        return -EBADMSG;
    guest->state = WIRE_IN_RUNNING;
    guest->features = message->hello.features;
    guest->channels_max =
        message->hello.channels_max < GUEST_CHANNELS_MAX ? message->hello.channels_max : GUEST_CHANNELS_MAX;
    *event = (struct guest_event){.kind = GUEST_HELLO};
    return 0;
}

int guest_hear(struct guest *guest, const struct wire_message *message, struct guest_event *ret_event)
{
    if (!wire_permits(message->type, WIRE_BY_GUEST, guest->state, 0))
        return -EBADMSG;
    if (guest->state == WIRE_IN_STARTING)
        return hear_first(guest, message, ret_event);
    /* All of them start with it. */
    uint64_t id = message->taken.channel;
    struct guest_channel *channel = find(guest, id);
    if (channel == NULL) {
        *ret_event = (struct guest_event){.kind = GUEST_STALE, .id = id};
        return id >> 32 < guest->start ? 0 : -EBADMSG;
    }
    switch ((int)message->type) { /* only some of them come here */
    case WIRE_STDOUT:
        return hear_output(channel, 0, message->stdout_data.offset, message->stdout_data.data, ret_event);
    case WIRE_STDERR:
        return hear_output(channel, 1, message->stderr_data.offset, message->stderr_data.data, ret_event);
    case WIRE_TAKEN:
        return hear_taken(channel, &message->taken, ret_event);
    case WIRE_RESUMED:
        return hear_resumed(guest, channel, &message->resumed, ret_event);
    case WIRE_EXIT:
        return hear_exit(guest, channel, &message->exit, ret_event);
    default:
        return -EBADMSG;
    }
}

size_t guest_stdin_room(const struct guest_channel *channel)
{
    uint64_t ahead = channel->sent - channel->taken;

    return channel->is_input_unknown || channel->stdin_closed || ahead >= WIRE_WINDOW ? 0
                                                                                      : (size_t)(WIRE_WINDOW - ahead);
}
