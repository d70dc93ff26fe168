/*
 * Rows live only as long as the callback that brings them, and each sandbox needs several questions one after the
 * other: so the ids are collected first, and then dealt with one by one. ask() runs the loop until the answer is there.
 * One exec's output is read at a time, so that adopting takes little more memory than running did.
 */
#include "gateway/adopt.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "gateway/recorded.h"
#include "gateway/store/batch.h"
#include "gateway/store/query.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PAGE_ROWS = 500, PIECES_MAX = 500 << 7, PIECE_BYTES = 64 << 10, OUTPUT_PAGE = 8 << 20 };
#define OUTPUT_MAX ((size_t)2 * EXEC_CAP_MAX)

struct ids {
    char (*items)[ENGINE_ID_SIZE];
    size_t count;
    size_t room;
};

/* An exec that ran when the gateway ended, with all that was recorded of it. */
struct pending {
    const char *id;
    struct recorded_exec recorded;
    struct store_output_end end;
    struct buf output; /* without gaps, up to `next` */
    uint64_t next;     /* position */
    struct exec_piece *pieces;
    size_t piece_count;
    size_t piece_room;
};

/* One question to the store, and what is done with its answer. */
struct question {
    struct adoption *adoption;
    struct pending *exec;
    bool is_answered;
    int result;
    uint64_t next;
    void (*take)(struct question *question, const struct store_page *page);
    struct ids *ids;
    struct error *err;
    uint64_t last_channel;
};

static void got_page(void *data, const struct store_page *page)
{
    struct question *question = data;

    question->is_answered = true;
    question->result = page->result;
    question->next = page->next;
    if (page->result == 0)
        question->take(question, page);
}

static int ask(struct question *question, const struct store_call *call)
{
    question->is_answered = false;
    if (call == NULL)
        return error_set(question->err, ERROR_SYSTEM, ENOMEM, "asking the store");
    while (!question->is_answered)
        (void)uv_run(question->adoption->loop, UV_RUN_ONCE);
    if (question->result < 0 && question->err->code == ERROR_NONE)
        return error_set(question->err, ERROR_SYSTEM, -question->result, "asking the store");
    return question->result;
}

static int add_id(struct ids *ids, const char *id)
{
    if (ids->count == ids->room) {
        size_t room = ids->room == 0 ? PAGE_ROWS : 2 * ids->room;
        void *items = reallocarray(ids->items, room, sizeof *ids->items);
        if (items == NULL)
            return -ENOMEM;
        ids->items = items;
        ids->room = room;
    }
    (void)snprintf(ids->items[ids->count++], ENGINE_ID_SIZE, "%s", id);
    return 0;
}

static void take_sandbox_ids(struct question *question, const struct store_page *page)
{
    for (size_t i = 0; question->result == 0 && i < page->count; i++)
        question->result = add_id(question->ids, page->sandboxes[i].id);
}

static void take_exec_ids(struct question *question, const struct store_page *page)
{
    for (size_t i = 0; question->result == 0 && i < page->count; i++)
        question->result = add_id(question->ids, page->execs[i].id);
}

static void take_last_channel(struct question *question, const struct store_page *page)
{
    question->last_channel = page->count > 0 ? page->execs[0].channel : 0;
}

static struct handover_sandbox *find_kept(const struct handover *handover, uint64_t number)
{
    for (size_t i = 0; i < handover->sandbox_count; i++) {
        if (handover->sandboxes[i].sandbox == number && handover->sandboxes[i].guest_fd >= 0)
            return &handover->sandboxes[i];
    }
    return NULL;
}

static int state_from(const char *name, enum sandbox_state *ret_state)
{
    static const enum sandbox_state states[] = {SANDBOX_READY, SANDBOX_PAUSED, SANDBOX_STOPPED};

    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        if (name != NULL && strcmp(name, sandbox_state_name(states[i])) == 0) {
            *ret_state = states[i];
            return 0;
        }
    }
    return -EINVAL;
}

static void note_lost_sandbox(struct question *question, const struct store_sandbox *row)
{
    struct timespec now;
    struct store_sandbox ended = *row;
    struct batch *batch = batch_new(question->adoption->store);

    (void)clock_gettime(CLOCK_REALTIME, &now);
    ended.status = sandbox_state_name(SANDBOX_GONE);
    ended.reason = sandbox_reason_name(SANDBOX_DRAINED);
    ended.ended_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    struct store_audit audit = {.principal = row->owner,
                                .agent = row->agent,
                                .sandbox = row->id,
                                .action = "sandbox.end",
                                .detail = "{\"reason\":\"drained\"}"};
    if (batch == NULL) {
        question->result = -ENOMEM;
        return;
    }
    batch_set_sandbox(batch, &ended);
    batch_add_audit(batch, &audit);
    question->result = batch_submit(batch, NULL, NULL) == NULL ? -ENOMEM : 0;
    question->adoption->lost++;
}

/* The bytes moved while their buffer grew: now they stay. */
static void place_pieces(struct pending *exec)
{
    const uint8_t *at = exec->output.data;

    for (size_t i = 0; i < exec->piece_count; i++) {
        exec->pieces[i].data = at;
        at += exec->pieces[i].length;
    }
}

static int adopt_exec(struct adoption *adoption, struct sandbox *sandbox, const char *sandbox_id, struct pending *exec)
{
    struct error err = {0};
    struct exec *adopted = NULL;
    const struct exec_adopted what = {.id = exec->id,
                                      .owner = exec->recorded.owner,
                                      .channel = exec->recorded.channel,
                                      .settings = &exec->recorded.settings,
                                      .started_ms = exec->recorded.started_ms,
                                      .seq_first = exec->end.position - exec->output.length,
                                      .offsets = {exec->end.offsets[0], exec->end.offsets[1]},
                                      .pieces = exec->pieces,
                                      .piece_count = exec->piece_count};

    place_pieces(exec);
    int r = exec->recorded.root == NULL
                ? -EINVAL
                : ledger_know_exec(adoption->ledger, exec->id, sandbox_id, exec->recorded.owner);
    if (r < 0)
        return r;
    r = exec_adopt(sandbox, &what, &adopted, &err);
    if (r < 0)
        ledger_forget_exec(adoption->ledger, exec->id);
    adoption->execs += r == 0;
    return r;
}

/* Of a sandbox that has ended, or that could not be gone on with. */
static int note_lost_exec(struct adoption *adoption, const char *sandbox_id, const struct pending *exec)
{
    const struct recorder *recorder = ledger_recorder(adoption->ledger);
    struct timespec now;
    struct exec_result result = {.end = EXEC_LOST, .totals = {exec->end.offsets[0], exec->end.offsets[1]}};

    (void)clock_gettime(CLOCK_REALTIME, &now);
    struct recorder_end end = {
        .exec = exec->id, .result = &result, .ended_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000};
    int r = ledger_know_exec(adoption->ledger, exec->id, sandbox_id, exec->recorded.owner);
    if (r == 0)
        recorder->end(recorder->context, &end, NULL, NULL);
    return r;
}

static struct sandbox *adopt_sandbox_row(struct question *question, const struct store_sandbox *row)
{
    struct adoption *adoption = question->adoption;
    struct handover_sandbox *kept = find_kept(adoption->handover, row->number);
    struct recorded_sandbox recorded;
    struct sandbox *sandbox = NULL;
    struct error err = {0};
    enum sandbox_state state;

    if (kept == NULL || state_from(row->status, &state) < 0 ||
        recorded_read_sandbox(ledger_seal(adoption->ledger), row, &recorded) < 0)
        return NULL;
    struct sandbox_adopted adopted = {.id = row->id,
                                      .number = row->number,
                                      .state = state,
                                      .settings = &recorded.settings,
                                      .created_ms = (uint64_t)row->created_ms,
                                      .last_channel = question->last_channel,
                                      .features = recorded.features,
                                      .guest_fd = TAKE_FD(kept->guest_fd)};
    if (ledger_know_sandbox(adoption->ledger, row->id) == 0 &&
        sandbox_adopt(adoption->engine, &adopted, &sandbox, &err) == 0)
        adoption->sandboxes++;
    json_decref(recorded.root);
    return sandbox;
}

/* The row of one sandbox: it lives and is adopted, or it has ended. */
static void take_sandbox(struct question *question, const struct store_page *page)
{
    const struct store_sandbox *row = page->count > 0 ? &page->sandboxes[0] : NULL;

    if (row != NULL && adopt_sandbox_row(question, row) == NULL)
        note_lost_sandbox(question, row);
}

static void got_end(void *data, const struct store_output_end *end)
{
    struct question *question = data;

    question->is_answered = true;
    question->result = end->result;
    question->exec->end = *end;
}

/* Pieces that follow one another are one: the bytes find their place later. */
static int add_piece(struct pending *exec, enum exec_stream stream, size_t length)
{
    struct exec_piece *last = exec->piece_count > 0 ? &exec->pieces[exec->piece_count - 1] : NULL;

    if (last != NULL && last->stream == stream && last->length < PIECE_BYTES) {
        last->length += length;
        return 0;
    }
    if (exec->piece_count == exec->piece_room) {
        size_t room = exec->piece_room == 0 ? PAGE_ROWS : 2 * exec->piece_room;
        void *pieces = room > PIECES_MAX ? NULL : reallocarray(exec->pieces, room, sizeof *exec->pieces);
        if (pieces == NULL)
            return -ENOBUFS;
        exec->pieces = pieces;
        exec->piece_room = room;
    }
    if (exec->pieces == NULL)
        return -ENOBUFS;
    exec->pieces[exec->piece_count++] = (struct exec_piece){.stream = stream, .length = length};
    return 0;
}

static void drop_output(struct pending *exec)
{
    exec->piece_count = 0;
    exec->output.length = 0;
}

/* Before a gap nothing is kept. */
static void take_output(struct question *question, const struct store_page *page)
{
    struct pending *exec = question->exec;

    for (size_t i = 0; question->result == 0 && i < page->count; i++) {
        const struct store_output *row = &page->outputs[i];
        if (row->position != exec->next)
            drop_output(exec);
        question->result = add_piece(exec, row->stream == 1 ? EXEC_STDOUT : EXEC_STDERR, row->length);
        if (question->result == 0)
            question->result = buf_append(&exec->output, row->data, row->length);
        exec->next = row->position + row->length;
    }
}

static void take_exec(struct question *question, const struct store_page *page)
{
    if (page->count > 0)
        question->result = recorded_read_exec(&page->execs[0], &question->exec->recorded);
}

/* What its ring has room for. */
static uint64_t cap_of(const struct exec_settings *settings)
{
    uint64_t cap = settings->mode == EXEC_COLLECT ? settings->stdout_cap + settings->stderr_cap : settings->stdout_cap;

    return cap > EXEC_STREAM_CAP_MIN ? cap : EXEC_STREAM_CAP_MIN;
}

static int read_output(struct question *question)
{
    struct store *store = question->adoption->store;
    struct pending *exec = question->exec;
    uint64_t cap = cap_of(&exec->recorded.settings);

    int r = ask(question, query_output_end(store, exec->id, got_end, question));
    uint64_t last = exec->end.position > cap ? exec->end.position - cap : 0;
    uint64_t position = exec->next = exec->end.first > last ? exec->end.first : last;
    question->take = take_output;
    while (r == 0 && position < exec->end.position) {
        r = ask(question, query_output(store, exec->id, position, OUTPUT_PAGE, got_page, question));
        if (exec->next == position)
            break;
        position = exec->next;
    }
    if (exec->next != exec->end.position)
        drop_output(exec);
    return r;
}

/* What can't be read of an exec leaves it without a past, or without settings; then it is lost. */
static int read_exec(struct question *question)
{
    struct exec_filter filter = {.id = question->exec->id, .limit = 1};

    question->take = take_exec;
    int r = ask(question, query_execs(question->adoption->store, &filter, got_page, question));
    if (r == -EINVAL) /* the settings */
        r = 0;
    if (r == 0)
        r = read_output(question);
    if (r == -ENOBUFS || r == -ENOMEM) { /* it goes on all the same, from where its record ends */
        drop_output(question->exec);
        r = 0;
    }
    if (r == 0)
        *question->err = (struct error){0};
    return r;
}

/* The loop has run since it was adopted. */
static struct sandbox *find_alive(const struct adoption *adoption, const char *id)
{
    struct sandbox *sandbox = sandbox_find(adoption->engine, id, NULL);
    struct sandbox_info info = {.state = SANDBOX_GONE};

    if (sandbox != NULL)
        sandbox_get(sandbox, &info);
    return info.state == SANDBOX_STOPPING || info.state == SANDBOX_GONE ? NULL : sandbox;
}

static int settle_exec(struct question *question, const char *sandbox_id, const char *id)
{
    struct adoption *adoption = question->adoption;
    struct pending exec = {.id = id, .output = buf_init(OUTPUT_MAX)};

    question->exec = &exec;
    int r = read_exec(question);
    struct sandbox *sandbox = find_alive(adoption, sandbox_id);
    if (r == 0 && (sandbox == NULL || adopt_exec(adoption, sandbox, sandbox_id, &exec) < 0))
        r = note_lost_exec(adoption, sandbox_id, &exec);
    json_decref(exec.recorded.root);
    buf_release(&exec.output);
    free(exec.pieces);
    return r;
}

static int list_live_execs(struct adoption *adoption, const char *sandbox, struct ids *ids, struct error *err)
{
    struct question question = {.adoption = adoption, .ids = ids, .err = err, .take = take_exec_ids};
    struct exec_filter filter = {.sandbox = sandbox, .live = true, .limit = PAGE_ROWS};
    int r;

    do {
        r = ask(&question, query_execs(adoption->store, &filter, got_page, &question));
        filter.cursor = question.next;
    } while (r == 0 && question.next != 0);
    return r;
}

static int adopt_sandbox(struct adoption *adoption, const char *id, struct error *err)
{
    struct question question = {.adoption = adoption, .err = err, .take = take_last_channel};
    struct exec_filter newest = {.sandbox = id, .limit = 1};
    struct sandbox_filter filter = {.id = id, .limit = 1};
    struct ids execs = {0};

    int r = ask(&question, query_execs(adoption->store, &newest, got_page, &question));
    if (r == 0)
        r = list_live_execs(adoption, id, &execs, err);
    question.take = take_sandbox;
    if (r == 0)
        r = ask(&question, query_sandboxes(adoption->store, &filter, got_page, &question));
    for (size_t i = 0; r == 0 && i < execs.count; i++)
        r = settle_exec(&question, id, execs.items[i]);
    free(execs.items);
    return r;
}

int adopt_all(struct adoption *adoption, struct error *err)
{
    struct ids ids = {0};
    struct question question = {.adoption = adoption, .ids = &ids, .err = err, .take = take_sandbox_ids};
    struct sandbox_filter filter = {.live = true, .limit = PAGE_ROWS};
    struct handover *handover = adoption->handover;
    int r;

    do {
        r = ask(&question, query_sandboxes(adoption->store, &filter, got_page, &question));
        filter.cursor = question.next;
    } while (r == 0 && question.next != 0);
    for (size_t i = 0; r == 0 && i < ids.count; i++)
        r = adopt_sandbox(adoption, ids.items[i], err);
    free(ids.items);
    for (size_t i = 0; r == 0 && i < handover->sandbox_count; i++) {
        if (handover->sandboxes[i].guest_fd >= 0)
            sandbox_disown(adoption->engine, handover->sandboxes[i].sandbox, TAKE_FD(handover->sandboxes[i].guest_fd));
    }
    if (r < 0)
        error_wrap(err, "taking over what an earlier gateway left");
    return r;
}
