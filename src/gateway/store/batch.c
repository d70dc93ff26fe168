#include "gateway/store/batch.h"

#include "gateway/store/core.h"
#include "gateway/store/op.h"

#include <string.h>
#include <time.h>

struct batch *batch_new(struct store *store)
{
    struct batch *batch = call_new(store, sizeof *batch, BATCH_BYTES_MAX);

    if (batch != NULL)
        batch->call.kind = CALL_BATCH;
    return batch;
}

void batch_free(struct batch *batch)
{
    if (batch != NULL)
        call_free(&batch->call);
}

static void deliver(struct store_call *call)
{
    struct batch *batch = (struct batch *)call;
    struct store_outcome outcome = {
        .result = call->result,
        .message = call->result < 0 ? call->error.message : NULL,
        .audit_number = call->result == 0 ? batch->audit_number : 0,
    };

    if (batch->done != NULL)
        batch->done(call->data, &outcome);
}

struct store_call *batch_submit(struct batch *batch, store_done_fn done, void *data)
{
    struct store_call *call = &batch->call;

    batch->done = done;
    call->data = data;
    call->deliver = deliver;
    call->bytes += call->scratch.used;
    if (call->scratch.full)
        call->result =
            error_set(&call->error, ERROR_LIMIT, ENOBUFS, "recording more than %d bytes at once", (int)BATCH_BYTES_MAX);
    core_submit(call->store, call);
    return call;
}

static struct op *add(struct batch *batch, enum op_type type)
{
    struct op *op = scratch_take(&batch->call.scratch, sizeof *op);

    if (op == NULL)
        return NULL;
    op->type = type;
    if (batch->last != NULL)
        batch->last->next = op;
    else
        batch->first = op;
    batch->last = op;
    return op;
}

#define COPY(field) ((field) = scratch_copy_text(&batch->call.scratch, (field)))

static void add_sandbox(struct batch *batch, enum op_type type, const struct store_sandbox *sandbox)
{
    struct op *op = add(batch, type);

    if (op == NULL)
        return;
    op->sandbox = *sandbox;
    COPY(op->sandbox.id);
    COPY(op->sandbox.owner);
    COPY(op->sandbox.agent);
    COPY(op->sandbox.status);
    COPY(op->sandbox.template_name);
    COPY(op->sandbox.profile);
    COPY(op->sandbox.settings);
    COPY(op->sandbox.reason);
}

void batch_add_sandbox(struct batch *batch, const struct store_sandbox *sandbox)
{
    add_sandbox(batch, OP_ADD_SANDBOX, sandbox);
}

void batch_set_sandbox(struct batch *batch, const struct store_sandbox *sandbox)
{
    add_sandbox(batch, OP_SET_SANDBOX, sandbox);
}

void batch_touch_sandbox(struct batch *batch, const char *id, int64_t used_ms)
{
    add_sandbox(batch, OP_TOUCH_SANDBOX, &(struct store_sandbox){.id = id, .used_ms = used_ms});
}

static void add_exec(struct batch *batch, enum op_type type, const struct store_exec *exec)
{
    struct op *op = add(batch, type);

    if (op == NULL)
        return;
    op->exec = *exec;
    COPY(op->exec.id);
    COPY(op->exec.sandbox);
    COPY(op->exec.owner);
    COPY(op->exec.agent);
    COPY(op->exec.command);
    COPY(op->exec.folder);
    COPY(op->exec.settings);
    COPY(op->exec.state);
}

void batch_add_exec(struct batch *batch, const struct store_exec *exec)
{
    add_exec(batch, OP_ADD_EXEC, exec);
}

void batch_set_exec(struct batch *batch, const struct store_exec *exec)
{
    add_exec(batch, OP_SET_EXEC, exec);
}

void batch_add_output(struct batch *batch, const struct store_output *output)
{
    struct op *op = output->length > 0 ? add(batch, OP_ADD_OUTPUT) : NULL;

    if (op == NULL)
        return;
    op->output = *output;
    COPY(op->output.exec);
    op->output.data = scratch_copy(&batch->call.scratch, output->data, output->length);
}

static int64_t now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void batch_add_audit(struct batch *batch, const struct store_audit *audit)
{
    struct op *op = add(batch, OP_ADD_AUDIT);

    if (op == NULL)
        return;
    op->audit = *audit;
    if (op->audit.time_ms == 0)
        op->audit.time_ms = now_ms();
    COPY(op->audit.principal);
    COPY(op->audit.agent);
    COPY(op->audit.sandbox);
    COPY(op->audit.exec);
    COPY(op->audit.action);
    COPY(op->audit.detail);
}

static void add_key(struct batch *batch, enum op_type type, const struct store_key *key)
{
    struct op *op = add(batch, type);

    if (op == NULL)
        return;
    op->key = *key;
    COPY(op->key.id);
    COPY(op->key.name);
    COPY(op->key.agent);
}

void batch_add_key(struct batch *batch, const struct store_key *key)
{
    add_key(batch, OP_ADD_KEY, key);
}

void batch_revoke_key(struct batch *batch, const char *id, int64_t revoked_ms)
{
    add_key(batch, OP_REVOKE_KEY, &(struct store_key){.id = id, .revoked_ms = revoked_ms});
}

void batch_touch_key(struct batch *batch, const char *id, int64_t used_ms)
{
    add_key(batch, OP_TOUCH_KEY, &(struct store_key){.id = id, .used_ms = used_ms});
}

static void add_pair(struct batch *batch, enum op_type type, const char *name, const char *value)
{
    struct op *op = add(batch, type);

    if (op == NULL)
        return;
    op->setting = (struct store_setting){.name = name, .value = value};
    COPY(op->setting.name);
    COPY(op->setting.value);
}

void batch_set_password(struct batch *batch, const char *name, const char *hash)
{
    add_pair(batch, OP_SET_PASSWORD, name, hash);
}

void batch_set_setting(struct batch *batch, const char *name, const char *value)
{
    add_pair(batch, OP_SET_SETTING, name, value);
}
