/* A sandbox's audit records, the newest first; also of one that has ended, as long as they are kept. */
#include "gateway/store/query.h"
#include "gateway/surface/call.h"
#include "gateway/surface/routes.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>

static const char *verdict_name(enum store_verdict verdict)
{
    static const char *const names[] = {"allowed", "denied", "failed"};

    return names[verdict];
}

static void write_hash(struct writer *writer, const char *key, const uint8_t hash[STORE_HASH_BYTES])
{
    char text[2 * STORE_HASH_BYTES + 1];

    writer_text(writer, key, sodium_bin2hex(text, sizeof text, hash, STORE_HASH_BYTES));
}

static void write_audit(struct writer *writer, const struct store_audit *audit)
{
    writer_open(writer, NULL, '{');
    writer_number(writer, "number", (int64_t)audit->number);
    writer_time(writer, "time", (uint64_t)audit->time_ms);
    writer_text(writer, "action", audit->action);
    writer_text(writer, "verdict", verdict_name(audit->verdict));
    writer_text(writer, "principal", audit->principal);
    writer_text(writer, "agent", audit->agent);
    writer_text(writer, "sandbox_id", audit->sandbox);
    writer_text(writer, "exec_id", audit->exec);
    writer_json(writer, "detail", audit->detail != NULL ? audit->detail : "null");
    if (audit->with_output)
        write_hash(writer, "output_hash", audit->output_hash);
    write_hash(writer, "hash", audit->hash);
    writer_close(writer, '}');
}

static void got_page(void *data, const struct store_page *page)
{
    struct call *call = data;
    struct writer writer = writer_init(CALL_ANSWER_MAX);

    if (page->result < 0) {
        call_refuse_unread(call, page->message);
        return;
    }
    writer_open(&writer, NULL, '{');
    writer_open(&writer, "entries", '[');
    for (size_t i = 0; i < page->count; i++)
        write_audit(&writer, &page->audits[i]);
    call_answer_page(call, &writer, page->count, page->next);
}

/* It is the caller's to see: only now the record of this call says which it was about. */
static void ask(struct call *call, const char *id)
{
    const struct call_page *wish = call->state;
    struct audit_filter filter = {.sandbox = id, .limit = wish->limit, .cursor = wish->cursor};

    (void)snprintf(call->sandbox, sizeof call->sandbox, "%s", id);
    if (query_audit(call->surface->options.store, &filter, got_page, call) == NULL)
        call_refuse_memory(call);
}

/* It is not live: was it, and was it the caller's? */
static void got_sandbox(void *data, const struct store_page *page)
{
    struct call *call = data;

    if (page->result < 0)
        call_refuse_unread(call, page->message);
    else if (page->count == 0)
        call_refuse(call, 404, "not_found", "there is no sandbox %s", request_parameter(call->request, "id"));
    else
        ask(call, page->sandboxes[0].id);
}

void logs_get(struct request *request)
{
    struct call *call = call_of(request);
    const char *id = request_parameter(request, "id");
    struct call_page *page = call_alloc(call, sizeof *page);

    if (page == NULL || call_query_page(call, NULL, page) < 0)
        return;
    call->state = page;
    if (id != NULL && sandbox_find(call->surface->options.engine, id, call_owner(call)) != NULL) {
        ask(call, id);
        return;
    }
    struct sandbox_filter filter = {.id = id, .owner = call_owner(call), .limit = 1};
    if (id == NULL || query_sandboxes(call->surface->options.store, &filter, got_sandbox, call) == NULL)
        call_refuse_memory(call);
}
