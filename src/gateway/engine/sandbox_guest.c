/*
 * What comes over the guest link, to whom it is of use.
 */
#include "gateway/engine/internal.h"

#include "wire/steps.h"

static void guest_heard(void *owner, const struct guest_event *event)
{
    struct sandbox *sandbox = owner;

    switch (event->kind) {
    case GUEST_TIMES:
        break;
    case GUEST_FAILED:
        (void)error_set(&sandbox->failure, ERROR_SYSTEM, (int)event->setup->error, "%s: %.200s",
                        step_words(event->setup->step), event->setup->detail.text);
        sandbox_finish(sandbox, SANDBOX_CRASHED);
        break;
    case GUEST_HELLO:
        sandbox_is_made(sandbox);
        break;
    case GUEST_STALE: {
        struct wire_message message = {.type = WIRE_RELEASE, .release = {.channel = event->id}};
        if (sandbox->link.outbox.first == NULL)
            ignore_result(sandbox_say(sandbox, &message)); /* if not now, then when it says more */
        break;
    }
    case GUEST_OLD:
        break;
    case GUEST_RESUMED:
        exec_heard_gaps(event->channel->owner, event->gaps);
        exec_heard_resumed(event->channel->owner, event->resumed);
        break;
    case GUEST_OUTPUT:
    case GUEST_TAKEN:
    case GUEST_EXIT:
        if (event->channel == &sandbox->warm_up) {
            if (event->kind == GUEST_EXIT)
                pool_warmed(sandbox);
        } else if (event->channel->is_file)
            file_heard(event->channel->owner, event);
        else if (event->kind == GUEST_OUTPUT)
            exec_heard_output(event->channel->owner, event->stream, event->data);
        else if (event->kind == GUEST_TAKEN)
            exec_heard_room(event->channel->owner);
        else
            exec_heard_exit(event->channel->owner, event->exit);
        break;
    }
}

/* Frames that came together are recorded together. */
static void guest_heard_all(void *owner)
{
    struct sandbox *sandbox = owner;

    for (struct exec *exec = sandbox->execs, *next; exec != NULL; exec = next) {
        next = exec->next;
        exec_record_output(exec);
    }
}

static void guest_drained(void *owner)
{
    struct sandbox *sandbox = owner;

    for (struct guest_channel *channel = sandbox->link.guest.channels, *next; channel != NULL; channel = next) {
        next = channel->next;
        if (channel == &sandbox->warm_up)
            continue;
        if (channel->is_file)
            file_link_drained(channel->owner);
        else
            exec_link_drained(channel->owner);
        if (sandbox->link.outbox.first != NULL)
            break;
    }
}

static void guest_ended(void *owner, int status)
{
    struct sandbox *sandbox = owner;

    if (status < 0) {
        sandbox_misbehaved(sandbox);
    } else if (sandbox->pool != NULL) {
        sandbox_finish(sandbox, SANDBOX_CRASHED); /* nobody is to claim it */
    } else if (sandbox_enter(sandbox, STATE_ENDED)) {
        sandbox_start_ending(sandbox, SANDBOX_CRASHED); /* the keeper's GONE says why, and concludes it */
    }
}

int sandbox_open_link(struct sandbox *sandbox, int fd)
{
    struct engine *engine = sandbox->engine;

    sandbox->link.frame = engine->frame;
    sandbox->link.owner = sandbox;
    sandbox->link.heard = guest_heard;
    sandbox->link.heard_all = guest_heard_all;
    sandbox->link.drained = guest_drained;
    sandbox->link.ended = guest_ended;
    int r = guest_link_open(&sandbox->link, engine->loop, fd, engine->options.start);
    if (sandbox->link.has_handle) {
        sandbox->link.poll.data = sandbox;
        sandbox->refs++;
        engine->handles++;
    }
    return r;
}
