#include "gateway/store/apply.h"

#include <string.h>

#define N VALUE_OF_NUMBER
#define T VALUE_OF_TEXT
#define B VALUE_OF_BYTES
#define HASH(h) VALUE_OF_BYTES((h), STORE_HASH_BYTES)
#define RUN(applier, name, values, changes, err)                                                                       \
    database_run((applier)->database, STATEMENT_##name, (values), sizeof(values) / sizeof *(values), (changes), (err))

static int must_exist(int r, uint64_t changes, const char *what, const char *id, struct error *err)
{
    if (r < 0 || changes > 0)
        return r;
    return error_set(err, ERROR_NOT_FOUND, ENOENT, "%s %s is not recorded", what, id != NULL ? id : "?");
}

static int add_sandbox(struct applier *applier, const struct op *op, struct error *err)
{
    const struct store_sandbox *s = &op->sandbox;
    const struct value values[] = {N(s->number),        T(s->id),       T(s->owner),    T(s->agent),  T(s->status),
                                   T(s->template_name), T(s->profile),  T(s->settings), T(s->reason), N(s->created_ms),
                                   N(s->expires_ms),    N(s->ended_ms), N(s->used_ms)};

    return RUN(applier, ADD_SANDBOX, values, NULL, err);
}

static int set_sandbox(struct applier *applier, const struct op *op, struct error *err)
{
    const struct store_sandbox *s = &op->sandbox;
    const struct value values[] = {T(s->id),     T(s->agent),      T(s->status),   T(s->settings),
                                   T(s->reason), N(s->expires_ms), N(s->ended_ms), N(s->used_ms)};
    uint64_t changes = 0;
    int r = RUN(applier, SET_SANDBOX, values, &changes, err);

    return must_exist(r, changes, "sandbox", s->id, err);
}

static int touch_sandbox(struct applier *applier, const struct op *op, struct error *err)
{
    const struct value values[] = {T(op->sandbox.id), N(op->sandbox.used_ms)};

    return RUN(applier, TOUCH_SANDBOX, values, NULL, err);
}

static int add_exec(struct applier *applier, const struct op *op, struct error *err)
{
    const struct store_exec *e = &op->exec;
    const struct value values[] = {T(e->id),
                                   T(e->sandbox),
                                   T(e->owner),
                                   T(e->agent),
                                   N(e->channel),
                                   T(e->command),
                                   T(e->folder),
                                   T(e->settings),
                                   N(e->flags),
                                   T(e->state),
                                   N(e->started_ms),
                                   N(e->deadline_ms),
                                   N(e->ended_ms),
                                   N(e->exit_code),
                                   N(e->timed_out),
                                   N(e->truncated),
                                   N(e->duration_us),
                                   N(e->cpu_us),
                                   N(e->memory_peak_bytes),
                                   N(e->stdout_bytes),
                                   N(e->stderr_bytes)};

    return RUN(applier, ADD_EXEC, values, NULL, err);
}

static int set_exec(struct applier *applier, const struct op *op, struct error *err)
{
    const struct store_exec *e = &op->exec;
    const struct value values[] = {T(e->id),           T(e->state),       N(e->ended_ms),
                                   N(e->exit_code),    N(e->timed_out),   N(e->truncated),
                                   N(e->duration_us),  N(e->cpu_us),      N(e->memory_peak_bytes),
                                   N(e->stdout_bytes), N(e->stderr_bytes)};
    uint64_t changes = 0;
    int r = RUN(applier, SET_EXEC, values, &changes, err);

    return must_exist(r, changes, "exec", e->id, err);
}

static int find_exec(struct applier *applier, const char *id, int64_t *ret_row, struct error *err)
{
    const struct value values[] = {T(id)};
    sqlite3_stmt *statement = database_bind(applier->database, STATEMENT_EXEC_ROW, values, 1, err);
    int r = statement != NULL ? database_step(applier->database, statement, err) : -err->err;

    if (r <= 0)
        return r < 0 ? r : must_exist(0, 0, "exec", id, err);
    *ret_row = sqlite3_column_int64(statement, 0);
    (void)sqlite3_reset(statement);
    return 0;
}

/* The end and the hash of an exec's last piece; 0 and zeroes when it has none. */
static int find_last_output(struct applier *applier, int64_t row, uint64_t *ret_end, uint8_t ret_hash[STORE_HASH_BYTES],
                            struct error *err)
{
    const struct value values[] = {N(row)};
    sqlite3_stmt *statement = database_bind(applier->database, STATEMENT_OUTPUT_LAST, values, 1, err);
    int r = statement != NULL ? database_step(applier->database, statement, err) : -err->err;

    *ret_end = 0;
    memset(ret_hash, 0, STORE_HASH_BYTES);
    if (r <= 0)
        return r;
    *ret_end = (uint64_t)sqlite3_column_int64(statement, 0);
    if (sqlite3_column_bytes(statement, 1) == STORE_HASH_BYTES)
        memcpy(ret_hash, sqlite3_column_blob(statement, 1), STORE_HASH_BYTES);
    (void)sqlite3_reset(statement);
    return 0;
}

static int trim_output(struct applier *applier, int64_t row, const struct store_output *o, struct error *err)
{
    uint64_t keep =
        o->keep_bytes > 0 && o->keep_bytes < applier->output_keep_bytes ? o->keep_bytes : applier->output_keep_bytes;
    uint64_t end = o->position + o->length;

    if (end <= keep)
        return 0;
    const struct value values[] = {N(row), N(end - keep)};
    return RUN(applier, TRIM_OUTPUT, values, NULL, err);
}

int apply_output(struct applier *applier, const struct store_output *o, struct error *err)
{
    int64_t row = 0;
    uint64_t end = 0;
    uint8_t previous[STORE_HASH_BYTES];
    uint8_t hash[STORE_HASH_BYTES];
    int r = find_exec(applier, o->exec, &row, err);

    if (r == 0)
        r = find_last_output(applier, row, &end, previous, err);
    if (r < 0)
        return r;
    if (o->position < end || o->offset > o->position || o->stream < 1 || o->stream > 2)
        return error_set(err, ERROR_INVALID, EEXIST, "output of exec %s at %llu, but %llu comes next", o->exec,
                         (unsigned long long)o->position, (unsigned long long)end);
    chain_hash_output(o, previous, hash);
    const struct value values[] = {N(row),         N(o->position), N(o->stream),         N(o->offset),
                                   HASH(previous), HASH(hash),     B(o->data, o->length)};
    r = RUN(applier, ADD_OUTPUT, values, NULL, err);
    return r == 0 ? trim_output(applier, row, o, err) : r;
}

int apply_output_end(struct applier *applier, const char *exec, uint64_t *ret_end, struct error *err)
{
    uint8_t hash[STORE_HASH_BYTES];
    int64_t row = 0;
    int r = find_exec(applier, exec, &row, err);

    return r == 0 ? find_last_output(applier, row, ret_end, hash, err) : r;
}

static int add_output(struct applier *applier, const struct op *op, struct error *err)
{
    return apply_output(applier, &op->output, err);
}

static int add_audit(struct applier *applier, struct op *op, struct error *err)
{
    struct store_audit *a = &op->audit;
    int64_t row = 0;
    uint64_t end = 0;
    int r = 0;

    if (a->with_output) {
        r = find_exec(applier, a->exec, &row, err);
        if (r == 0)
            r = find_last_output(applier, row, &end, a->output_hash, err);
        if (r < 0)
            return r;
    }
    a->number = applier->head.number + 1;
    memcpy(a->previous, applier->head.hash, STORE_HASH_BYTES);
    chain_hash_audit(a, a->hash);
    const struct value values[] = {
        N(a->number),      N(a->time_ms), T(a->principal), T(a->agent),  T(a->sandbox),
        T(a->exec),        T(a->action),  N(a->verdict),   T(a->detail), HASH(a->with_output ? a->output_hash : NULL),
        HASH(a->previous), HASH(a->hash)};
    r = RUN(applier, ADD_AUDIT, values, NULL, err);
    if (r == 0) {
        applier->head.number = a->number;
        memcpy(applier->head.hash, a->hash, STORE_HASH_BYTES);
    }
    return r;
}

static int add_key(struct applier *applier, const struct op *op, struct error *err)
{
    const struct store_key *k = &op->key;
    const struct value values[] = {T(k->id),         T(k->name),       HASH(k->hash),    N(k->scope),  T(k->agent),
                                   N(k->created_ms), N(k->expires_ms), N(k->revoked_ms), N(k->used_ms)};

    return RUN(applier, ADD_KEY, values, NULL, err);
}

static int revoke_key(struct applier *applier, const struct op *op, struct error *err)
{
    const struct value values[] = {T(op->key.id), N(op->key.revoked_ms)};
    uint64_t changes = 0;
    int r = RUN(applier, REVOKE_KEY, values, &changes, err);

    return must_exist(r, changes, "key", op->key.id, err);
}

static int touch_key(struct applier *applier, const struct op *op, struct error *err)
{
    const struct value values[] = {T(op->key.id), N(op->key.used_ms)};

    return RUN(applier, TOUCH_KEY, values, NULL, err);
}

static int set_password(struct applier *applier, const struct op *op, struct error *err)
{
    const struct value values[] = {T(op->setting.name), T(op->setting.value)};

    return RUN(applier, SET_PASSWORD, values, NULL, err);
}

static int set_setting(struct applier *applier, const struct op *op, struct error *err)
{
    const struct value values[] = {T(op->setting.name), T(op->setting.value)};

    if (op->setting.value == NULL)
        return database_run(applier->database, STATEMENT_DROP_SETTING, values, 1, NULL, err);
    return RUN(applier, SET_SETTING, values, NULL, err);
}

static int apply_op(struct applier *applier, struct op *op, struct error *err)
{
    static int (*const handlers[OP_TYPES])(struct applier *, const struct op *, struct error *) = {
        [OP_ADD_SANDBOX] = add_sandbox,   [OP_SET_SANDBOX] = set_sandbox, [OP_TOUCH_SANDBOX] = touch_sandbox,
        [OP_ADD_EXEC] = add_exec,         [OP_SET_EXEC] = set_exec,       [OP_ADD_OUTPUT] = add_output,
        [OP_ADD_KEY] = add_key,           [OP_REVOKE_KEY] = revoke_key,   [OP_TOUCH_KEY] = touch_key,
        [OP_SET_PASSWORD] = set_password, [OP_SET_SETTING] = set_setting,
    };

    return op->type == OP_ADD_AUDIT ? add_audit(applier, op, err) : handlers[op->type](applier, op, err);
}

int apply_batch(struct applier *applier, struct batch *batch, struct error *err)
{
    int r = 0;

    for (struct op *op = batch->first; op != NULL && r == 0; op = op->next) {
        r = apply_op(applier, op, err);
        if (r == 0 && op->type == OP_ADD_AUDIT)
            batch->audit_number = op->audit.number;
    }
    return r;
}

static int load_link(struct applier *applier, const char *name, struct chain_link *ret_link, struct error *err)
{
    const struct value values[] = {T(name)};
    sqlite3_stmt *statement = database_bind(applier->database, STATEMENT_CHAIN, values, 1, err);
    int r = statement != NULL ? database_step(applier->database, statement, err) : -err->err;

    if (r < 0)
        return r;
    if (r == 0 || sqlite3_column_bytes(statement, 1) != STORE_HASH_BYTES) {
        (void)sqlite3_reset(statement);
        return error_set(err, ERROR_SYSTEM, EBADMSG, "the %s of the audit log is not recorded", name);
    }
    ret_link->number = (uint64_t)sqlite3_column_int64(statement, 0);
    memcpy(ret_link->hash, sqlite3_column_blob(statement, 1), STORE_HASH_BYTES);
    (void)sqlite3_reset(statement);
    return 0;
}

static int save_link(struct applier *applier, const char *name, const struct chain_link *link, struct error *err)
{
    const struct value values[] = {T(name), N(link->number), HASH(link->hash)};

    return RUN(applier, SET_CHAIN, values, NULL, err);
}

int apply_load_chain(struct applier *applier, struct error *err)
{
    int r = load_link(applier, "head", &applier->head, err);

    return r == 0 ? load_link(applier, "indexed", &applier->indexed, err) : r;
}

int apply_save_head(struct applier *applier, struct error *err)
{
    return save_link(applier, "head", &applier->head, err);
}

int apply_index(struct applier *applier, uint64_t count, struct error *err)
{
    struct chain_link indexed = applier->indexed;
    uint64_t left = applier->head.number - indexed.number;
    const struct value values[] = {N(indexed.number), N(indexed.number + (left < count ? left : count))};
    int r = RUN(applier, INDEX_AUDIT, values, NULL, err);

    indexed.number += left < count ? left : count;
    if (r == 0)
        r = save_link(applier, "indexed", &indexed, err);
    if (r == 0)
        applier->indexed = indexed;
    return r;
}
