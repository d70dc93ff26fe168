#include "gateway/ledger.h"

#include "gateway/engine/table.h"
#include "gateway/store/batch.h"
#include "gateway/store/spool.h"
#include "gateway/store/spool_file.h"
#include "gateway/surface/writer.h"
#include "wire/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SETTINGS_MAX = 1 << 20, OWNER_SIZE = 65, COMMAND_MAX = 4 << 20 };

_Static_assert((int)RECORDER_PIECES <= (int)SPOOL_PIECES_MAX && EXEC_STREAMS * (int)WIRE_WINDOW <= (int)SPOOL_SLACK,
               "what is not recorded fits into one write");

/* A sandbox or an exec that has a row. */
struct known {
    struct table_entry entry;
    char id[ENGINE_ID_SIZE];
    char sandbox[ENGINE_ID_SIZE]; /* of an exec */
    char owner[OWNER_SIZE];
    bool is_ended;
};

struct ledger {
    struct recorder recorder;
    uv_loop_t *loop;
    struct store *store;
    struct engine *engine;
    const struct seal *seal;
    struct table known;
};

/* One call of the engine's until the store has answered it. */
struct entry {
    struct ledger *ledger;
    recorder_done done;
    void *request;
    char added[ENGINE_ID_SIZE]; /* whose row is new: when that fails there is none */
    char ended[ENGINE_ID_SIZE]; /* whose last record it is, unless it is given again */
    int status;
    uv_async_t async; /* for an answer that the store can't give */
};

static struct known *find(const struct ledger *ledger, const char *id)
{
    uint64_t hash = table_hash_text(id);

    for (struct table_entry *entry = NULL; (entry = table_next(&ledger->known, hash, entry)) != NULL;) {
        struct known *known = TABLE_OWNER(struct known, entry, entry);
        if (strcmp(known->id, id) == 0)
            return known;
    }
    return NULL;
}

static void forget(struct ledger *ledger, const char *id)
{
    struct known *known = find(ledger, id);

    if (known == NULL)
        return;
    table_remove(&ledger->known, &known->entry);
    free(known);
}

static struct known *know(struct ledger *ledger, const char *id, const char *sandbox, const char *owner)
{
    struct known *known = calloc(1, sizeof *known);

    if (known == NULL)
        return NULL;
    (void)snprintf(known->id, sizeof known->id, "%s", id);
    (void)snprintf(known->sandbox, sizeof known->sandbox, "%s", sandbox);
    (void)snprintf(known->owner, sizeof known->owner, "%s", owner != NULL ? owner : "");
    table_add(&ledger->known, &known->entry, table_hash_text(known->id));
    return known;
}

static void finish(struct entry *entry, int status)
{
    if (status < 0 && *entry->added != '\0')
        forget(entry->ledger, entry->added);
    if (status != -ENOBUFS && *entry->ended != '\0')
        forget(entry->ledger, entry->ended);
    if (entry->done != NULL)
        entry->done(entry->request, status);
    free(entry);
}

static void recorded(void *data, const struct store_outcome *outcome)
{
    finish(data, outcome->result);
}

static void async_closed(uv_handle_t *handle)
{
    struct entry *entry = handle->data;

    finish(entry, entry->status);
}

/* The engine must not be answered from within its call; closing a handle comes back from the loop. */
static void answer_later(struct entry *entry, uv_loop_t *loop, int status)
{
    entry->status = status;
    entry->async.data = entry;
    (void)uv_async_init(loop, &entry->async, NULL);
    uv_close((uv_handle_t *)&entry->async, async_closed);
}

/* Without memory for an entry nobody can be answered: the same as when the process ends, and it does. */
static struct entry *make_entry(struct ledger *ledger, recorder_done done, void *request)
{
    struct entry *entry = calloc(1, sizeof *entry);

    if (entry == NULL)
        abort();
    entry->ledger = ledger;
    entry->done = done;
    entry->request = request;
    return entry;
}

static void submit(struct entry *entry, struct batch *batch)
{
    if (batch == NULL || batch_submit(batch, recorded, entry) == NULL)
        answer_later(entry, entry->ledger->loop, -ENOMEM);
}

static void write_vector(struct writer *writer, const char *key, const char *const *vector)
{
    writer_open(writer, key, '[');
    for (; vector != NULL && *vector != NULL; vector++)
        writer_text(writer, NULL, *vector);
    writer_close(writer, ']');
}

static const char *finish_text(struct writer *writer)
{
    if (buf_append(&writer->buf, "", 1) < 0)
        writer->result = -ENOBUFS;
    return writer_end(writer) == 0 ? (const char *)writer->buf.data : NULL;
}

/* Callers put secrets there: see seal.h. What has ended needs it no more. */
static void write_env(struct writer *writer, const struct ledger *ledger, const struct recorder_sandbox *sandbox)
{
    struct writer plain = writer_init(SETTINGS_MAX);

    if (sandbox->ended_ms != 0 || sandbox->settings->env == NULL || *sandbox->settings->env == NULL)
        return;
    write_vector(&plain, NULL, sandbox->settings->env);
    char *sealed =
        writer_end(&plain) == 0 ? seal_close(ledger->seal, sandbox->id, plain.buf.data, plain.buf.length) : NULL;
    if (sealed != NULL)
        writer_text(writer, "sealed_env", sealed);
    else
        writer->result = -ENOBUFS;
    free(sealed);
    if (plain.buf.data != NULL)
        explicit_bzero(plain.buf.data, plain.buf.length);
    writer_release(&plain);
}

static void write_settings(struct writer *writer, const struct ledger *ledger, const struct recorder_sandbox *sandbox,
                           uint32_t features)
{
    const struct sandbox_settings *settings = sandbox->settings;
    const struct sandbox_class *class = &settings->class;

    writer_open(writer, NULL, '{');
    writer_text(writer, "template", class->template_name);
    writer_number(writer, "user", class->user);
    writer_number(writer, "filter", class->filter);
    writer_number(writer, "network", class->network);
    writer_switch(writer, "root_is_writable", class->root_is_writable);
    writer_switch(writer, "disk_is_image", class->disk_is_image);
    writer_number(writer, "disk_bytes", (int64_t) class->disk_bytes);
    writer_number(writer, "disk_inodes", (int64_t) class->disk_inodes);
    writer_number(writer, "memory_bytes", (int64_t)settings->limits.memory_bytes);
    writer_number(writer, "processes", settings->limits.processes);
    writer_number(writer, "cpu_milli", settings->limits.cpu_milli);
    writer_number(writer, "cpu_weight", settings->limits.cpu_weight);
    writer_number(writer, "idle_timeout_ms", (int64_t)settings->idle_timeout_ms);
    writer_number(writer, "lifetime_ms", (int64_t)settings->lifetime_ms);
    writer_number(writer, "features", features);
    write_env(writer, ledger, sandbox);
    writer_text(writer, "extra", settings->extra != NULL ? settings->extra : "");
    writer_close(writer, '}');
}

static uint32_t features_of(const struct ledger *ledger, const char *id)
{
    struct sandbox *sandbox = ledger->engine != NULL ? sandbox_find(ledger->engine, id, NULL) : NULL;
    struct sandbox_info info = {0};

    if (sandbox != NULL)
        sandbox_get(sandbox, &info);
    return info.features;
}

static void add_end(struct batch *batch, const struct recorder_sandbox *sandbox)
{
    struct writer detail = writer_init(SETTINGS_MAX);

    writer_open(&detail, NULL, '{');
    writer_text(&detail, "reason", sandbox_reason_name(sandbox->reason));
    writer_close(&detail, '}');
    struct store_audit audit = {.principal = sandbox->settings->owner,
                                .agent = sandbox->settings->agent,
                                .sandbox = sandbox->id,
                                .action = "sandbox.end",
                                .detail = finish_text(&detail)};
    batch_add_audit(batch, &audit);
    writer_release(&detail);
}

static void record_sandbox(void *context, const struct recorder_sandbox *sandbox, recorder_done done, void *request)
{
    struct ledger *ledger = context;
    struct entry *entry = make_entry(ledger, done, request);
    struct batch *batch = batch_new(ledger->store);
    struct known *known = find(ledger, sandbox->id);
    bool is_new = known == NULL;
    struct writer text = writer_init(SETTINGS_MAX);

    if (is_new)
        known = know(ledger, sandbox->id, "", sandbox->settings->owner);
    write_settings(&text, ledger, sandbox, features_of(ledger, sandbox->id));
    struct store_sandbox row = {
        .number = sandbox->number,
        .id = sandbox->id,
        .owner = sandbox->settings->owner,
        .agent = sandbox->settings->agent,
        .status = sandbox_state_name(sandbox->state),
        .template_name = sandbox->settings->class.template_name,
        .settings = finish_text(&text),
        .reason = sandbox->reason != SANDBOX_NO_REASON ? sandbox_reason_name(sandbox->reason) : NULL,
        .created_ms = (int64_t)sandbox->created_ms,
        .expires_ms =
            sandbox->settings->lifetime_ms != 0 ? (int64_t)(sandbox->created_ms + sandbox->settings->lifetime_ms) : 0,
        .ended_ms = (int64_t)sandbox->ended_ms,
    };
    if (batch == NULL || known == NULL || row.settings == NULL) {
        batch_free(batch);
        batch = NULL;
    } else if (is_new) {
        (void)snprintf(entry->added, sizeof entry->added, "%s", sandbox->id);
        batch_add_sandbox(batch, &row);
    } else {
        batch_set_sandbox(batch, &row);
    }
    if (batch != NULL && sandbox->ended_ms != 0 && !known->is_ended) {
        known->is_ended = true;
        add_end(batch, sandbox);
    }
    if (sandbox->state == SANDBOX_GONE)
        forget(ledger, sandbox->id);
    writer_release(&text);
    submit(entry, batch);
}

static void write_command(struct writer *writer, const struct exec_settings *settings)
{
    if (settings->argv != NULL)
        write_vector(writer, NULL, settings->argv);
    else
        writer_text(writer, NULL, settings->shell);
}

/* Not its environment: a command that was started needs it no more, and callers put secrets there. */
static void write_exec(struct writer *writer, const struct exec_settings *settings)
{
    writer_open(writer, NULL, '{');
    writer_number(writer, "uid", settings->uid);
    writer_number(writer, "filter", settings->filter);
    writer_number(writer, "mode", settings->mode);
    writer_switch(writer, "has_terminal", settings->has_terminal);
    writer_switch(writer, "has_stdin", settings->has_stdin);
    writer_switch(writer, "is_attached", settings->is_attached);
    writer_number(writer, "stdout_cap", (int64_t)settings->stdout_cap);
    writer_number(writer, "stderr_cap", (int64_t)settings->stderr_cap);
    writer_number(writer, "timeout_ms", (int64_t)settings->timeout_ms);
    writer_text(writer, "extra", settings->extra != NULL ? settings->extra : "");
    writer_close(writer, '}');
}

static void record_exec(void *context, const struct recorder_exec *exec, recorder_done done, void *request)
{
    struct ledger *ledger = context;
    struct entry *entry = make_entry(ledger, done, request);
    struct batch *batch = batch_new(ledger->store);
    struct writer command = writer_init(COMMAND_MAX);
    struct writer settings = writer_init(SETTINGS_MAX);

    write_command(&command, exec->settings);
    write_exec(&settings, exec->settings);
    struct store_exec row = {
        .id = exec->id,
        .sandbox = exec->sandbox,
        .owner = exec->owner,
        .agent = exec->settings->agent,
        .channel = exec->channel,
        .command = finish_text(&command),
        .folder = exec->settings->folder,
        .settings = finish_text(&settings),
        .state = "running",
        .started_ms = (int64_t)exec->started_ms,
        .deadline_ms = exec->settings->timeout_ms != 0 ? (int64_t)(exec->started_ms + exec->settings->timeout_ms) : 0};
    if (batch != NULL && row.command != NULL && row.settings != NULL &&
        know(ledger, exec->id, exec->sandbox, exec->owner) != NULL) {
        (void)snprintf(entry->added, sizeof entry->added, "%s", exec->id);
        batch_add_exec(batch, &row);
    } else {
        batch_free(batch);
        batch = NULL;
    }
    writer_release(&command);
    writer_release(&settings);
    submit(entry, batch);
}

static struct store_output row_of(const struct recorder_output *output)
{
    return (struct store_output){.exec = output->exec,
                                 .stream = output->stream == EXEC_STDOUT ? 1 : 2,
                                 .offset = output->offset,
                                 .position = output->seq,
                                 .data = output->data,
                                 .length = output->length,
                                 .keep_bytes = output->seq + output->length - output->keep_from};
}

static void add_pieces(struct batch *batch, const struct recorder_output *pieces, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct store_output row = row_of(&pieces[i]);
        batch_add_output(batch, &row);
    }
}

static void record_output(void *context, const struct recorder_output *pieces, size_t count, recorder_done done,
                          void *request)
{
    struct ledger *ledger = context;
    struct entry *entry = make_entry(ledger, done, request);
    struct batch *batch = batch_new(ledger->store);

    if (batch != NULL)
        add_pieces(batch, pieces, count);
    submit(entry, batch);
}

static bool has_room(void *context)
{
    const struct ledger *ledger = context;

    return store_has_room(ledger->store);
}

/* A spool of the store's, and the ledger that answers for it. */
struct recorder_spool {
    struct ledger *ledger;
    struct spool *spool;
};

static struct recorder_spool *make_spool(void *context, const char *exec, uint64_t cap)
{
    struct ledger *ledger = context;
    struct recorder_spool *made = malloc(sizeof *made);

    if (made == NULL)
        return NULL;
    *made = (struct recorder_spool){.ledger = ledger, .spool = spool_new(ledger->store, exec, cap)};
    if (made->spool == NULL) {
        free(made);
        return NULL;
    }
    return made;
}

static void write_spool(struct recorder_spool *spool, const struct recorder_output *pieces, size_t count,
                        recorder_done done, void *request)
{
    struct entry *entry = make_entry(spool->ledger, done, request);
    struct store_output rows[RECORDER_PIECES];

    for (size_t i = 0; i < count; i++)
        rows[i] = row_of(&pieces[i]);
    if (!spool_write(spool->spool, rows, count, recorded, entry))
        answer_later(entry, spool->ledger->loop, -ENOMEM);
}

static void end_spool(struct recorder_spool *spool, bool remove)
{
    spool_free(spool->spool, remove);
    free(spool);
}

static const char *end_name(const struct exec_result *result)
{
    static const char *const names[] = {[EXEC_EXITED] = "exited",
                                        [EXEC_SIGNALED] = "signaled",
                                        [EXEC_NOT_STARTED] = "not_started",
                                        [EXEC_LOST] = "lost"};

    return result->timed_out ? "timed_out" : names[result->end];
}

static void add_exec_end(struct batch *batch, const struct known *known, const struct exec_result *result)
{
    struct writer detail = writer_init(SETTINGS_MAX);

    writer_open(&detail, NULL, '{');
    writer_text(&detail, "end", end_name(result));
    writer_number(&detail, "exit_code", exec_exit_code(result));
    writer_number(&detail, "duration_ms", (int64_t)(result->duration_ns / 1000000));
    writer_number(&detail, "stdout_bytes", (int64_t)result->totals[EXEC_STDOUT]);
    writer_number(&detail, "stderr_bytes", (int64_t)result->totals[EXEC_STDERR]);
    writer_close(&detail, '}');
    struct store_audit audit = {.principal = known->owner,
                                .sandbox = known->sandbox,
                                .exec = known->id,
                                .action = "exec.end",
                                .detail = finish_text(&detail),
                                .with_output = true};
    batch_add_audit(batch, &audit);
    writer_release(&detail);
}

static void record_end(void *context, const struct recorder_end *end, recorder_done done, void *request)
{
    struct ledger *ledger = context;
    const struct exec_result *result = end->result;
    struct entry *entry = make_entry(ledger, done, request);
    struct batch *batch = batch_new(ledger->store);
    struct known *known = find(ledger, end->exec);
    struct store_exec row = {.id = end->exec,
                             .state = end_name(result),
                             .ended_ms = (int64_t)end->ended_ms,
                             .exit_code = exec_exit_code(result),
                             .timed_out = result->timed_out,
                             .truncated = result->truncated,
                             .duration_us = result->duration_ns / 1000,
                             .cpu_us = result->user_us + result->system_us,
                             .memory_peak_bytes = result->peak_bytes,
                             .stdout_bytes = result->totals[EXEC_STDOUT],
                             .stderr_bytes = result->totals[EXEC_STDERR]};

    if (batch != NULL) {
        add_pieces(batch, end->pieces, end->piece_count);
        batch_set_exec(batch, &row);
        if (known != NULL)
            add_exec_end(batch, known, result);
    }
    (void)snprintf(entry->ended, sizeof entry->ended, "%s", end->exec);
    submit(entry, batch);
}

int ledger_new(struct store *store, uv_loop_t *loop, const struct seal *seal, struct ledger **ret_ledger,
               struct error *err)
{
    struct ledger *ledger = calloc(1, sizeof *ledger);

    if (ledger == NULL || table_init(&ledger->known) < 0) {
        free(ledger);
        return error_set(err, ERROR_SYSTEM, ENOMEM, "making the ledger");
    }
    ledger->store = store;
    ledger->seal = seal;
    ledger->loop = loop;
    ledger->recorder = (struct recorder){.context = ledger,
                                         .sandbox = record_sandbox,
                                         .exec = record_exec,
                                         .output = record_output,
                                         .has_room = has_room,
                                         .end = record_end,
                                         .spool = make_spool,
                                         .spool_write = write_spool,
                                         .spool_end = end_spool};
    *ret_ledger = ledger;
    return 0;
}

void ledger_free(struct ledger *ledger)
{
    if (ledger == NULL)
        return;
    for (size_t i = 0; i < ledger->known.room; i++) {
        while (ledger->known.buckets[i] != NULL)
            forget(ledger, TABLE_OWNER(struct known, entry, ledger->known.buckets[i])->id);
    }
    table_release(&ledger->known);
    free(ledger);
}

const struct recorder *ledger_recorder(const struct ledger *ledger)
{
    return &ledger->recorder;
}

void ledger_set_engine(struct ledger *ledger, struct engine *engine)
{
    ledger->engine = engine;
}

int ledger_know_sandbox(struct ledger *ledger, const char *id)
{
    return know(ledger, id, "", "") != NULL ? 0 : -ENOMEM;
}

int ledger_know_exec(struct ledger *ledger, const char *id, const char *sandbox, const char *owner)
{
    return know(ledger, id, sandbox, owner) != NULL ? 0 : -ENOMEM;
}

void ledger_forget_exec(struct ledger *ledger, const char *id)
{
    forget(ledger, id);
}

const struct seal *ledger_seal(const struct ledger *ledger)
{
    return ledger->seal;
}
