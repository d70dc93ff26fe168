/* Refusals of strangers, as strangers.h says, on their way into the store; and what never became a request. */
#include "base/cleanup.h"
#include "gateway/net/refusal.h"
#include "gateway/store/batch.h"
#include "gateway/surface/call.h"
#include "gateway/surface/state.h"

#include <stdlib.h>

/* A record on its way, and what is to be counted again when it does not get there. */
struct telling {
    struct surface *surface;
    const char *action;
    struct stranger stranger;
};

static void interval_ended(uv_timer_t *timer)
{
    surface_tell_strangers(timer->data);
}

static void begin_interval(struct surface *surface)
{
    if (!uv_is_active((uv_handle_t *)&surface->interval))
        ignore_result(
            uv_timer_start(&surface->interval, interval_ended, STRANGERS_INTERVAL_MS, 0)); /* has a callback */
}

static void count_again(struct surface *surface, const char *action, const struct stranger *stranger,
                        const char *message)
{
    strangers_count_again(&surface->strangers, stranger);
    begin_interval(surface);
    log_event(surface->options.log, LOG_LEVEL_ERROR, "unrecorded", LOG_TEXT("action", action),
              LOG_TEXT("peer", stranger->address), LOG_NUMBER("refused", (int64_t)stranger->counted),
              LOG_TEXT("error", message));
}

static void told(void *data, const struct store_outcome *outcome)
{
    _cleanup_free_ struct telling *telling = data;

    if (outcome->result < 0)
        count_again(telling->surface, telling->action, &telling->stranger,
                    outcome->message != NULL ? outcome->message : "");
}

static void submit(struct surface *surface, const char *action, enum store_verdict verdict, struct writer *detail,
                   const struct stranger *stranger)
{
    struct telling *telling = malloc(sizeof *telling);
    struct batch *batch = NULL;

    if (telling != NULL && buf_append(&detail->buf, "", 1) == 0 && writer_end(detail) == 0)
        batch = batch_new(surface->options.store);
    if (batch != NULL) {
        *telling = (struct telling){.surface = surface, .action = action, .stranger = *stranger};
        batch_add_audit(batch, &(struct store_audit){
                                   .action = action, .verdict = verdict, .detail = (const char *)detail->buf.data});
    }
    if (batch == NULL || batch_submit(batch, told, telling) == NULL) {
        count_again(surface, action, stranger, "there is no memory");
        free(telling);
    }
    writer_release(detail);
}

/* What can't be recorded is counted again, in the interval that begins. */
void surface_tell_strangers(struct surface *surface)
{
    const struct stranger *stranger = NULL;

    surface->ended = surface->strangers;
    strangers_clear(&surface->strangers);
    while ((stranger = strangers_next(&surface->ended, stranger)) != NULL) {
        struct writer detail = writer_init(CALL_DETAIL_MAX);
        writer_open(&detail, NULL, '{');
        writer_text(&detail, "peer", stranger->address);
        writer_number(&detail, "refused", (int64_t)stranger->counted);
        writer_open(&detail, "reasons", '{');
        for (size_t i = 0; i < STRANGERS_REASONS; i++) {
            if (stranger->reasons[i] > 0)
                writer_number(&detail, strangers_reason(i), (int64_t)stranger->reasons[i]);
        }
        writer_close(&detail, '}');
        writer_close(&detail, '}');
        submit(surface, "request.refused", STORE_DENIED, &detail, stranger);
    }
}

enum strangers_verdict surface_note_stranger(struct surface *surface, const struct peer *peer, const char *code)
{
    enum strangers_verdict verdict = strangers_note(&surface->strangers, peer, code);

    surface->counts.counted += verdict == STRANGERS_COUNTED;
    begin_interval(surface);
    return verdict;
}

/* It was answered by now: there is no request that could wait for its record. */
void surface_bad(void *context, const struct peer *peer, unsigned status, const char *message)
{
    struct surface *surface = context;
    enum strangers_verdict verdict = surface_note_stranger(surface, peer, refusal_code(status));
    struct stranger one = strangers_one(peer, refusal_code(status));
    struct writer detail = writer_init(CALL_DETAIL_MAX);

    if (verdict == STRANGERS_COUNTED)
        return;
    writer_open(&detail, NULL, '{');
    writer_text(&detail, "error", refusal_code(status));
    writer_text(&detail, "message", message);
    if (verdict == STRANGERS_RECORD_LAST)
        writer_text(&detail, "more", "counted");
    writer_text(&detail, "peer", peer->kind == PEER_TCP ? peer->address : "unix");
    writer_number(&detail, "status", status);
    writer_close(&detail, '}');
    submit(surface, "request", STORE_FAILED, &detail, &one);
}
