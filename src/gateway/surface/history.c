#include "gateway/surface/history.h"

#include "gateway/store/query.h"

#include <stdio.h>
#include <string.h>

struct search {
    struct history *history;
    call_then found;
    void *state; /* what the handler had there */
};

static void refuse(struct call *call)
{
    const char *id = request_parameter(call->request, "eid");

    call_refuse(call, 404, "not_found", "there is no exec %s; results are kept for a while only", id != NULL ? id : "");
}

static void got_row(void *data, const struct store_page *page)
{
    struct call *call = data;
    struct search *search = call->state;
    const struct store_exec *row = page->count > 0 ? &page->execs[0] : NULL;

    call->state = search->state;
    if (page->result < 0) {
        call_refuse_unread(call, page->message);
        return;
    }
    if (row == NULL || row->ended_ms == 0) {
        refuse(call);
        return;
    }
    search->history->row = *row;
    (void)snprintf(search->history->sandbox, sizeof search->history->sandbox, "%s", row->sandbox);
    (void)snprintf(call->exec, sizeof call->exec, "%s", row->id);
    (void)snprintf(call->sandbox, sizeof call->sandbox, "%s", row->sandbox);
    search->found(call);
}

void history_find(struct call *call, struct history *history, call_then found)
{
    struct search *search = call_alloc(call, sizeof *search);
    struct exec_filter filter = {.id = request_parameter(call->request, "eid"), .owner = call_owner(call), .limit = 1};

    if (search == NULL)
        return;
    *search = (struct search){.history = history, .found = found, .state = call->state};
    call->state = search;
    if (filter.id == NULL || query_execs(call->surface->options.store, &filter, got_row, call) == NULL)
        call_refuse_memory(call);
}

void history_write_figures(struct writer *writer, const struct history *history)
{
    const struct store_exec *row = &history->row;

    writer_number(writer, "exit_code", row->exit_code);
    writer_switch(writer, "timed_out", row->timed_out);
    writer_switch(writer, "truncated", row->truncated);
    writer_number(writer, "duration_ms", (int64_t)(row->duration_us / 1000));
    writer_number(writer, "cpu_time_ms", (int64_t)(row->cpu_us / 1000));
    writer_number(writer, "memory_peak_bytes", (int64_t)row->memory_peak_bytes);
    writer_number(writer, "stdout_bytes", (int64_t)row->stdout_bytes);
    writer_number(writer, "stderr_bytes", (int64_t)row->stderr_bytes);
}

static void answer(struct call *call)
{
    const struct history *history = call->state;
    struct writer writer = writer_init(CALL_ANSWER_MAX);

    writer_open(&writer, NULL, '{');
    writer_text(&writer, "id", call->exec);
    writer_text(&writer, "sandbox_id", call->sandbox);
    writer_text(&writer, "status", "exited");
    writer_time(&writer, "started_at", (uint64_t)history->row.started_ms);
    history_write_figures(&writer, history);
    writer_close(&writer, '}');
    call_answer(call, 200, &writer);
}

void history_answer(struct call *call)
{
    struct history *history = call_alloc(call, sizeof *history);

    if (history == NULL)
        return;
    call->state = history;
    history_find(call, history, answer);
}
