/*
 * Queries and the reader's thread. Each query carries the function that runs it on the reader's thread; what that finds
 * lies in the query's own scratch until it is delivered.
 */
#include "gateway/store/query.h"

#include "gateway/store/core.h"
#include "gateway/store/rows.h"
#include "gateway/store/verify.h"

#include <string.h>

enum {
    LIMIT_DEFAULT = 100,
    VALUES_MAX = 8,
    AUDIT_FILTERS = 5,
    OUTPUT_PIECES_MAX = QUERY_ROWS_MAX,
    OUTPUT_BYTES_MAX = QUERY_BYTES_MAX / 2
};

typedef void (*read_row_fn)(struct scratch *scratch, sqlite3_stmt *statement, void *row);

struct query {
    struct store_call call;
    int (*run)(struct query *query, struct database *database, struct error *err); /* 1: not finished yet */
    union {
        store_page_fn page_done;
        store_output_end_fn end_done;
        store_verified_fn verified;
    };
    enum statement statement;
    struct value values[VALUES_MAX];
    size_t value_count;
    size_t limit;
    size_t row_size;
    read_row_fn read_row;
    uint8_t *rows;
    uint64_t position;
    size_t bytes;
    const char *exec;
    struct store_page page;
    struct store_output_end end;
    struct verify verify;
};

static void deliver_page(struct store_call *call)
{
    struct query *query = (struct query *)call;

    query->page.result = call->result;
    query->page.message = call->result < 0 ? call->error.message : NULL;
    if (call->result < 0)
        query->page.count = 0;
    if (query->page_done != NULL)
        query->page_done(call->data, &query->page);
}

static struct query *new_query(struct store *store, void *data)
{
    struct query *query = call_new(store, sizeof *query, QUERY_BYTES_MAX);

    if (query != NULL) {
        query->call.data = data;
        query->call.deliver = deliver_page;
    }
    return query;
}

static struct store_call *submit(struct query *query)
{
    if (query->call.scratch.full)
        query->call.result = error_set(&query->call.error, ERROR_LIMIT, ENOBUFS, "asking for a name that is too long");
    core_submit(query->call.store, &query->call);
    return &query->call;
}

/*
 * One row more than was asked for tells whether more follow. The first member of a row is what the cursor counts. Rows
 * are put behind those that are in the page already.
 */
static int run_page(struct query *query, struct database *database, struct error *err)
{
    struct scratch *scratch = &query->call.scratch;
    size_t count = query->page.count;

    if (query->rows == NULL)
        query->rows = scratch_take(scratch, query->limit * query->row_size);
    sqlite3_stmt *statement =
        query->rows != NULL ? database_bind(database, query->statement, query->values, query->value_count, err) : NULL;
    int r = statement != NULL ? database_step(database, statement, err) : -ENOMEM;

    for (; r > 0 && count < query->limit; r = database_step(database, statement, err)) {
        query->read_row(scratch, statement, query->rows + count * query->row_size);
        if (scratch->full)
            break;
        count++;
    }
    if (r > 0)
        (void)sqlite3_reset(statement);
    if (r < 0)
        return r;
    if (r > 0 && count == 0)
        return error_set(err, ERROR_LIMIT, ENOBUFS, "reading a row that is too large");
    query->page.count = count;
    query->page.sandboxes = (const struct store_sandbox *)(const void *)query->rows;
    if (r > 0)
        memcpy(&query->page.next, query->rows + (count - 1) * query->row_size, sizeof query->page.next);
    return 0;
}

static struct value text_value(struct query *query, const char *text)
{
    return VALUE_OF_TEXT(scratch_copy_text(&query->call.scratch, text));
}

static void set_page(struct query *query, enum statement statement, size_t limit, uint64_t cursor, size_t row_size,
                     read_row_fn read_row)
{
    query->run = run_page;
    query->statement = statement;
    query->limit = limit == 0 ? LIMIT_DEFAULT : limit > QUERY_ROWS_MAX ? QUERY_ROWS_MAX : limit;
    query->row_size = row_size;
    query->read_row = read_row;
    query->values[0] = VALUE_OF_NUMBER(cursor == 0 || cursor > INT64_MAX ? INT64_MAX : cursor);
    query->values[1] = VALUE_OF_NUMBER(query->limit + 1);
    query->value_count = 2;
}

struct store_call *query_sandboxes(struct store *store, const struct sandbox_filter *filter, store_page_fn done,
                                   void *data)
{
    struct query *query = new_query(store, data);
    enum statement statement = filter->live         ? STATEMENT_SANDBOXES_LIVE
                               : filter->id != NULL ? STATEMENT_SANDBOX_BY_ID
                                                    : STATEMENT_SANDBOXES;

    if (query == NULL)
        return NULL;
    query->page_done = done;
    set_page(query, statement, filter->id != NULL ? 1 : filter->limit, filter->cursor, sizeof(struct store_sandbox),
             rows_read_sandbox);
    query->values[query->value_count++] = text_value(query, filter->id);
    query->values[query->value_count++] = text_value(query, filter->owner);
    query->values[query->value_count++] = text_value(query, filter->agent);
    query->values[query->value_count++] = text_value(query, filter->status);
    return submit(query);
}

struct store_call *query_execs(struct store *store, const struct exec_filter *filter, store_page_fn done, void *data)
{
    struct query *query = new_query(store, data);
    enum statement statement = filter->id != NULL        ? STATEMENT_EXEC_BY_ID
                               : filter->live            ? STATEMENT_EXECS_LIVE
                               : filter->sandbox != NULL ? STATEMENT_EXECS_OF
                                                         : STATEMENT_EXECS;

    if (query == NULL)
        return NULL;
    query->page_done = done;
    set_page(query, statement, filter->id != NULL ? 1 : filter->limit, filter->cursor, sizeof(struct store_exec),
             rows_read_exec);
    query->values[query->value_count++] = text_value(query, filter->id);
    query->values[query->value_count++] = text_value(query, filter->sandbox);
    query->values[query->value_count++] = text_value(query, filter->owner);
    return submit(query);
}

/* Newest first: what has not been indexed yet, then what has. In one transaction, so that the index doesn't move. */
static int run_audit(struct query *query, struct database *database, struct error *err)
{
    struct error ignored;
    int r = database_run(database, STATEMENT_BEGIN_READ, NULL, 0, NULL, err);

    if (r < 0)
        return r;
    query->statement = STATEMENT_AUDIT_TAIL;
    query->value_count = AUDIT_FILTERS;
    r = run_page(query, database, err);
    if (r == 0 && query->page.next == 0 && query->page.count < query->limit) {
        query->statement = STATEMENT_AUDIT_INDEXED;
        query->value_count = AUDIT_FILTERS + 2;
        r = run_page(query, database, err);
    }
    ignore_result(database_run(database, STATEMENT_COMMIT, NULL, 0, NULL, &ignored)); /* nothing was written */
    return r;
}

struct store_call *query_audit(struct store *store, const struct audit_filter *filter, store_page_fn done, void *data)
{
    struct query *query = new_query(store, data);
    const char *names[] = {filter->sandbox, filter->agent, filter->principal};

    if (query == NULL)
        return NULL;
    query->page_done = done;
    set_page(query, STATEMENT_AUDIT, filter->limit, filter->cursor, sizeof(struct store_audit), rows_read_audit);
    for (size_t i = 0; i < 3; i++)
        query->values[query->value_count++] = text_value(query, names[i]);
    for (size_t i = 0; i < 3 && query->run == run_page; i++) {
        if (names[i] == NULL)
            continue;
        query->values[AUDIT_FILTERS] = VALUE_OF_NUMBER(i);
        query->values[AUDIT_FILTERS + 1] = query->values[2 + i];
        query->run = run_audit;
    }
    return submit(query);
}

struct store_call *query_keys(struct store *store, size_t limit, uint64_t cursor, store_page_fn done, void *data)
{
    struct query *query = new_query(store, data);

    if (query == NULL)
        return NULL;
    query->page_done = done;
    set_page(query, STATEMENT_KEYS, limit, cursor, sizeof(struct store_key), rows_read_key);
    return submit(query);
}

static int run_settings(struct query *query, struct database *database, struct error *err)
{
    int r = run_page(query, database, err);

    query->page.next = 0;
    return r;
}

struct store_call *query_settings(struct store *store, store_page_fn done, void *data)
{
    struct query *query = new_query(store, data);

    if (query == NULL)
        return NULL;
    query->page_done = done;
    set_page(query, STATEMENT_SETTINGS, QUERY_ROWS_MAX, 0, sizeof(struct store_setting), rows_read_setting);
    query->values[0] = VALUE_OF_NUMBER(0);
    query->run = run_settings;
    return submit(query);
}

static int find_exec(struct query *query, struct database *database, int64_t *ret_row, struct error *err)
{
    const struct value values[] = {VALUE_OF_TEXT(query->exec)};
    sqlite3_stmt *statement = database_bind(database, STATEMENT_EXEC_ROW, values, 1, err);
    int r = statement != NULL ? database_step(database, statement, err) : -err->err;

    if (r < 0)
        return r;
    if (r == 0)
        return error_set(err, ERROR_NOT_FOUND, ENOENT, "exec %s", query->exec);
    *ret_row = sqlite3_column_int64(statement, 0);
    (void)sqlite3_reset(statement);
    return 0;
}

static bool read_piece(struct query *query, sqlite3_stmt *statement, struct store_output *ret_output)
{
    struct store_output output = {
        .exec = query->exec,
        .position = (uint64_t)sqlite3_column_int64(statement, 0),
        .stream = (uint8_t)sqlite3_column_int64(statement, 1),
        .offset = (uint64_t)sqlite3_column_int64(statement, 2),
        .length = (size_t)sqlite3_column_bytes(statement, 3),
    };
    const uint8_t *data = sqlite3_column_blob(statement, 3);
    size_t skip = query->position > output.position ? query->position - output.position : 0;

    if (skip >= output.length)
        return false;
    output.position += skip;
    output.offset += skip;
    output.length -= skip;
    output.data = scratch_copy(&query->call.scratch, data + skip, output.length);
    *ret_output = output;
    return true;
}

static int read_pieces(struct query *query, struct database *database, sqlite3_stmt *statement,
                       struct store_output *outputs, struct error *err)
{
    size_t bytes = 0;
    size_t count = 0;
    int r = database_step(database, statement, err);

    for (; r > 0 && count < OUTPUT_PIECES_MAX && bytes < query->bytes; r = database_step(database, statement, err)) {
        if (!read_piece(query, statement, &outputs[count]))
            continue;
        if (query->call.scratch.full)
            break;
        bytes += outputs[count].length;
        count++;
    }
    if (r > 0)
        (void)sqlite3_reset(statement);
    if (r > 0 && count > 0)
        query->page.next = outputs[count - 1].position + outputs[count - 1].length;
    query->page.outputs = outputs;
    query->page.count = count;
    return r < 0 ? r : 0;
}

static int run_output(struct query *query, struct database *database, struct error *err)
{
    int64_t row = 0;
    int r = find_exec(query, database, &row, err);
    struct store_output *outputs = scratch_take(&query->call.scratch, OUTPUT_PIECES_MAX * sizeof *outputs);

    if (r < 0)
        return r;
    const struct value values[] = {VALUE_OF_NUMBER(row), VALUE_OF_NUMBER(query->position),
                                   VALUE_OF_NUMBER(OUTPUT_PIECES_MAX + 2)};
    sqlite3_stmt *statement = outputs != NULL ? database_bind(database, STATEMENT_OUTPUT, values, 3, err) : NULL;
    return statement != NULL ? read_pieces(query, database, statement, outputs, err) : -ENOMEM;
}

struct store_call *query_output(struct store *store, const char *exec, uint64_t position, size_t bytes,
                                store_page_fn done, void *data)
{
    struct query *query = new_query(store, data);

    if (query == NULL)
        return NULL;
    query->page_done = done;
    query->run = run_output;
    query->exec = scratch_copy_text(&query->call.scratch, exec);
    query->position = position > INT64_MAX ? INT64_MAX : position;
    query->bytes = bytes > OUTPUT_BYTES_MAX ? OUTPUT_BYTES_MAX : bytes;
    return submit(query);
}

static void deliver_end(struct store_call *call)
{
    struct query *query = (struct query *)call;

    query->end.result = call->result;
    if (query->end_done != NULL)
        query->end_done(call->data, &query->end);
}

static int run_output_end(struct query *query, struct database *database, struct error *err)
{
    struct store_output_end *end = &query->end;
    int64_t row = 0;
    int r = find_exec(query, database, &row, err);

    if (r < 0)
        return r;
    const struct value values[] = {VALUE_OF_NUMBER(row)};
    sqlite3_stmt *statement = database_bind(database, STATEMENT_OUTPUT_END, values, 1, err);
    r = statement != NULL ? database_step(database, statement, err) : -ENOMEM;
    if (r <= 0)
        return r;
    end->position = (uint64_t)sqlite3_column_int64(statement, 0);
    size_t own = sqlite3_column_int64(statement, 2) == 2 ? 1 : 0;
    end->offsets[own] = (uint64_t)sqlite3_column_int64(statement, 1);
    end->offsets[1 - own] = end->position - end->offsets[own];
    (void)sqlite3_reset(statement);
    statement = database_bind(database, STATEMENT_OUTPUT_FIRST, values, 1, err);
    r = statement != NULL ? database_step(database, statement, err) : -ENOMEM;
    if (r <= 0)
        return r;
    end->first = (uint64_t)sqlite3_column_int64(statement, 0);
    (void)sqlite3_reset(statement);
    return 0;
}

struct store_call *query_output_end(struct store *store, const char *exec, store_output_end_fn done, void *data)
{
    struct query *query = new_query(store, data);

    if (query == NULL)
        return NULL;
    query->call.deliver = deliver_end;
    query->end_done = done;
    query->run = run_output_end;
    query->exec = scratch_copy_text(&query->call.scratch, exec);
    return submit(query);
}

static void deliver_verdict(struct store_call *call)
{
    struct query *query = (struct query *)call;
    const struct verify *verify = &query->verify;
    struct store_verdict_of_log verdict = {
        .result = call->result,
        .message = call->result < 0 ? call->error.message
                   : verify->broken ? verify->problem.message
                                    : NULL,
        .first = verify->first,
        .last = verify->at.number,
        .checked = verify->checked,
        .intact = call->result == 0 && !verify->broken,
        .bad = verify->bad,
    };

    if (query->verified != NULL)
        query->verified(call->data, &verdict);
}

static int run_verify(struct query *query, struct database *database, struct error *err)
{
    return verify_slice(&query->verify, database, err);
}

struct store_call *query_verify(struct store *store, store_verified_fn done, void *data)
{
    struct query *query = new_query(store, data);

    if (query == NULL)
        return NULL;
    query->call.deliver = deliver_verdict;
    query->verified = done;
    query->run = run_verify;
    return submit(query);
}

void *reader_main(void *argument)
{
    struct store *store = argument;
    struct call_list calls;

    while (queue_take(&store->reads, 1, 0, -1, &calls)) {
        struct store_call *call = calls.first;
        if (call == NULL)
            continue;
        call->result = ((struct query *)call)->run((struct query *)call, &store->reader, &call->error);
        if (call->result > 0) {
            call->result = 0;
            queue_push_all(&store->reads, &calls);
        } else {
            core_answer(store, &calls);
        }
    }
    return NULL;
}
