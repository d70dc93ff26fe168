/* What was written is what is read, page by page. */
#include "fixture.h"

enum { MANY = 250 };

/* A page, copied as far as the tests look at it. */
struct seen {
    struct fixture *fixture;
    int result;
    size_t count;
    uint64_t next;
    char names[1000][40];
    struct store_sandbox sandbox;
    struct store_exec exec;
    struct store_audit audit;
    uint8_t output[1 << 17];
    size_t output_length;
    uint64_t first_position;
    struct store_output_end end;
};

static struct seen seen;

static void begin(struct fixture *fixture)
{
    memset(&seen, 0, sizeof seen);
    seen.fixture = fixture;
    fixture->answered = false;
}

static void note(const struct store_page *page)
{
    seen.fixture->answered = true;
    seen.result = page->result;
    seen.count = page->count;
    seen.next = page->next;
}

static void saw_sandboxes(void *data, const struct store_page *page)
{
    (void)data;
    note(page);
    for (size_t i = 0; i < page->count; i++)
        (void)snprintf(seen.names[i], sizeof seen.names[i], "%s", page->sandboxes[i].id);
    if (page->count > 0) {
        seen.sandbox = page->sandboxes[0];
        assert_string_equal(seen.sandbox.settings, "{\"cpu\":1}");
        assert_string_equal(seen.sandbox.template_name, "host");
        assert_null(seen.sandbox.profile);
    }
}

static void saw_execs(void *data, const struct store_page *page)
{
    (void)data;
    note(page);
    for (size_t i = 0; i < page->count; i++)
        (void)snprintf(seen.names[i], sizeof seen.names[i], "%s", page->execs[i].id);
    if (page->count > 0)
        seen.exec = page->execs[0];
}

static void saw_audits(void *data, const struct store_page *page)
{
    (void)data;
    note(page);
    for (size_t i = 0; i < page->count; i++)
        (void)snprintf(seen.names[i], sizeof seen.names[i], "%s", page->audits[i].detail);
    if (page->count > 0)
        seen.audit = page->audits[0];
}

static void saw_output(void *data, const struct store_page *page)
{
    (void)data;
    note(page);
    seen.first_position = page->count > 0 ? page->outputs[0].position : 0;
    for (size_t i = 0; i < page->count; i++) {
        assert_true(seen.output_length + page->outputs[i].length <= sizeof seen.output);
        memcpy(seen.output + seen.output_length, page->outputs[i].data, page->outputs[i].length);
        seen.output_length += page->outputs[i].length;
    }
}

static void saw_end(void *data, const struct store_output_end *end)
{
    (void)data;
    seen.fixture->answered = true;
    seen.end = *end;
    seen.result = end->result;
}

static void saw_settings(void *data, const struct store_page *page)
{
    (void)data;
    note(page);
    for (size_t i = 0; i < page->count; i++)
        (void)snprintf(seen.names[i], sizeof seen.names[i], "%s=%s", page->settings[i].name, page->settings[i].value);
}

static void list(struct fixture *fixture, struct sandbox_filter filter)
{
    begin(fixture);
    assert_non_null(query_sandboxes(fixture->store, &filter, saw_sandboxes, NULL));
    fixture_await(fixture);
    assert_int_equal(seen.result, 0);
}

static void list_execs(struct fixture *fixture, struct exec_filter filter)
{
    begin(fixture);
    assert_non_null(query_execs(fixture->store, &filter, saw_execs, NULL));
    fixture_await(fixture);
    assert_int_equal(seen.result, 0);
}

static void list_audit(struct fixture *fixture, struct audit_filter filter)
{
    begin(fixture);
    assert_non_null(query_audit(fixture->store, &filter, saw_audits, NULL));
    fixture_await(fixture);
    assert_int_equal(seen.result, 0);
}

static void read_output(struct fixture *fixture, const char *exec, uint64_t position, size_t bytes)
{
    begin(fixture);
    assert_non_null(query_output(fixture->store, exec, position, bytes, saw_output, NULL));
    fixture_await(fixture);
}

static void add_sandbox(struct fixture *fixture, const char *id, const char *owner, int64_t ended_ms)
{
    struct batch *batch = fixture_batch(fixture);

    batch_add_sandbox(batch, &(struct store_sandbox){.number = 7,
                                                     .id = id,
                                                     .owner = owner,
                                                     .agent = "robot",
                                                     .status = ended_ms > 0 ? "gone" : "ready",
                                                     .template_name = "host",
                                                     .settings = "{\"cpu\":1}",
                                                     .created_ms = 1000,
                                                     .expires_ms = 2000,
                                                     .ended_ms = ended_ms});
    assert_int_equal(fixture_submit(fixture, batch), 0);
}

static void add_exec(struct fixture *fixture, const char *id, const char *sandbox)
{
    struct batch *batch = fixture_batch(fixture);

    batch_add_exec(batch, &(struct store_exec){.id = id,
                                               .sandbox = sandbox,
                                               .owner = "key_a",
                                               .channel = UINT64_MAX,
                                               .command = "[\"true\"]",
                                               .state = "running",
                                               .started_ms = 5,
                                               .deadline_ms = 50});
    assert_int_equal(fixture_submit(fixture, batch), 0);
}

TEST(sandboxes_are_listed_newest_first)
{
    struct fixture fixture = fixture_new();

    fixture_open(&fixture);
    add_sandbox(&fixture, "sb_1", "key_a", 0);
    add_sandbox(&fixture, "sb_2", "key_b", 0);
    add_sandbox(&fixture, "sb_3", "key_a", 99);
    list(&fixture, (struct sandbox_filter){0});
    assert_int_equal(seen.count, 3);
    assert_string_equal(seen.names[0], "sb_3");
    assert_string_equal(seen.names[2], "sb_1");
    assert_int_equal(seen.next, 0);
    list(&fixture, (struct sandbox_filter){.owner = "key_a"});
    assert_int_equal(seen.count, 2);
    list(&fixture, (struct sandbox_filter){.owner = "key_a", .live = true});
    assert_int_equal(seen.count, 1);
    assert_string_equal(seen.names[0], "sb_1");
    list(&fixture, (struct sandbox_filter){.id = "sb_2"});
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.sandbox.number, 7);
    assert_int_equal(seen.sandbox.expires_ms, 2000);
    list(&fixture, (struct sandbox_filter){.id = "sb_2", .owner = "key_a"});
    assert_int_equal(seen.count, 0);
    list(&fixture, (struct sandbox_filter){.status = "gone"});
    assert_int_equal(seen.count, 1);
    list(&fixture, (struct sandbox_filter){.agent = "somebody"});
    assert_int_equal(seen.count, 0);
    fixture_close(&fixture);
    fixture_remove(&fixture);
}

TEST(a_sandbox_changes)
{
    struct fixture fixture = fixture_new();

    fixture_open(&fixture);
    add_sandbox(&fixture, "sb_1", "key_a", 0);
    struct batch *batch = fixture_batch(&fixture);
    batch_set_sandbox(batch, &(struct store_sandbox){.id = "sb_1",
                                                     .owner = "thief",
                                                     .status = "gone",
                                                     .settings = "{\"cpu\":1}",
                                                     .reason = "idle",
                                                     .ended_ms = 77});
    assert_int_equal(fixture_submit(&fixture, batch), 0);
    list(&fixture, (struct sandbox_filter){.owner = "key_a", .status = "gone"});
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.sandbox.ended_ms, 77);
    assert_int_equal(seen.sandbox.created_ms, 1000);
    batch = fixture_batch(&fixture);
    batch_set_sandbox(batch, &(struct store_sandbox){.id = "sb_9", .status = "gone"});
    assert_int_equal(fixture_submit(&fixture, batch), -ENOENT);
    assert_non_null(strstr(fixture.message, "sb_9"));
    assert_true(store_can_record(fixture.store));
    fixture_close(&fixture);
    fixture_remove(&fixture);
}

TEST(pages_lead_through_everything)
{
    struct fixture fixture = fixture_new();
    char id[40];
    char detail[40];
    uint64_t cursor = 0;
    size_t total = 0;

    fixture_open(&fixture);
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(detail, sizeof detail, "{\"n\":%d}", i);
        fixture_audit(&fixture, i % 5 == 0 ? "sb_five" : "sb_other", detail, 0);
    }
    do {
        list_audit(&fixture, (struct audit_filter){.limit = 37, .cursor = cursor});
        for (size_t i = 0; i < seen.count; i++) {
            (void)snprintf(id, sizeof id, "{\"n\":%d}", (int)(MANY - 1 - total - i));
            assert_string_equal(seen.names[i], id);
        }
        total += seen.count;
        cursor = seen.next;
    } while (cursor != 0);
    assert_int_equal(total, MANY);
    list_audit(&fixture, (struct audit_filter){.sandbox = "sb_five", .limit = 1000});
    assert_int_equal(seen.count, MANY / 5);
    list_audit(&fixture, (struct audit_filter){.agent = "agent", .principal = "nobody"});
    assert_int_equal(seen.count, 0);
    list_audit(&fixture, (struct audit_filter){.agent = "agent", .limit = MANY});
    assert_int_equal(seen.count, MANY);
    assert_int_equal(seen.next, 0);
    list_audit(&fixture, (struct audit_filter){.principal = "key_a", .limit = 3});
    assert_int_equal(seen.count, 3);
    assert_int_not_equal(seen.next, 0);
    fixture_close(&fixture);
    fixture_remove(&fixture);
}

static int64_t ask(const struct fixture *fixture, const char *sql)
{
    char path[256];
    sqlite3 *handle;
    sqlite3_stmt *statement;

    (void)snprintf(path, sizeof path, "%s/hutch.db", fixture->folder);
    assert_int_equal(sqlite3_open(path, &handle), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(handle, sql, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    int64_t number = sqlite3_column_int64(statement, 0);
    (void)sqlite3_finalize(statement);
    (void)sqlite3_close(handle);
    return number;
}

static void await_index(const struct fixture *fixture, int64_t number)
{
    for (int i = 0; i < 500 && ask(fixture, "SELECT number FROM chain WHERE name = 'indexed'") < number; i++)
        (void)usleep(10000);
    assert_int_equal(ask(fixture, "SELECT number FROM chain WHERE name = 'indexed'"), number);
}

static size_t count_pages(struct fixture *fixture, struct audit_filter filter)
{
    size_t total = 0;
    uint64_t last = UINT64_MAX;

    do {
        list_audit(fixture, filter);
        total += seen.count;
        assert_true(seen.count == 0 || seen.audit.number < last);
        last = seen.next;
        filter.cursor = seen.next;
    } while (filter.cursor != 0);
    return total;
}

/* Records are found by name whether they are in the index already or not. */
TEST(the_index_catches_up)
{
    struct fixture fixture = fixture_new();
    const struct audit_filter filters[] = {
        {.sandbox = "sb_1", .limit = 7}, {.agent = "agent", .limit = 7}, {.principal = "key_a", .limit = 7}};

    fixture_open(&fixture);
    for (int i = 0; i < 30; i++)
        fixture_audit(&fixture, i % 2 == 0 ? "sb_1" : NULL, "{}", 10 + i);
    assert_int_equal(ask(&fixture, "SELECT count(*) FROM audit_index"), 0);
    await_index(&fixture, 30);
    assert_int_equal(ask(&fixture, "SELECT count(*) FROM audit_index"), 15 + 30 + 30);
    for (int i = 30; i < 40; i++)
        fixture_audit(&fixture, i % 2 == 0 ? "sb_1" : NULL, "{}", 10 + i);
    assert_int_equal(count_pages(&fixture, filters[0]), 20);
    assert_int_equal(count_pages(&fixture, filters[1]), 40);
    assert_int_equal(count_pages(&fixture, filters[2]), 40);
    fixture.answered = false;
    assert_non_null(store_prune(fixture.store, &(struct store_retention){.audit_keep = 5}, fixture_done, &fixture));
    fixture_await(&fixture);
    await_index(&fixture, 40);
    assert_int_equal(count_pages(&fixture, filters[0]), 2);
    assert_int_equal(ask(&fixture, "SELECT count(*) FROM audit_index"), 2 + 5 + 5);
    fixture_close(&fixture);
    fixture_open(&fixture);
    assert_int_equal(count_pages(&fixture, filters[1]), 5);
    fixture_close(&fixture);
    fixture_remove(&fixture);
}

TEST(execs_that_ran_are_found_after_a_restart)
{
    struct fixture fixture = fixture_new();

    fixture_open(&fixture);
    add_exec(&fixture, "ex_1", "sb_1");
    add_exec(&fixture, "ex_2", "sb_1");
    struct batch *batch = fixture_batch(&fixture);
    batch_set_exec(batch, &(struct store_exec){.id = "ex_1",
                                               .state = "ended",
                                               .ended_ms = 9,
                                               .exit_code = -1,
                                               .timed_out = true,
                                               .cpu_us = 3,
                                               .stdout_bytes = 4});
    assert_int_equal(fixture_submit(&fixture, batch), 0);
    fixture_close(&fixture);
    fixture_open(&fixture);
    list_execs(&fixture, (struct exec_filter){.live = true});
    assert_int_equal(seen.count, 1);
    assert_string_equal(seen.names[0], "ex_2");
    assert_true(seen.exec.channel == UINT64_MAX);
    assert_int_equal(seen.exec.deadline_ms, 50);
    list_execs(&fixture, (struct exec_filter){.id = "ex_1"});
    assert_int_equal(seen.exec.exit_code, -1);
    assert_true(seen.exec.timed_out);
    assert_false(seen.exec.truncated);
    assert_int_equal(seen.exec.stdout_bytes, 4);
    list_execs(&fixture, (struct exec_filter){.sandbox = "sb_1", .owner = "key_a"});
    assert_int_equal(seen.count, 2);
    fixture_close(&fixture);
    fixture_remove(&fixture);
}

/* Output of both streams in pieces of `piece` bytes, in turn; byte number n is n % 251. */
static void add_output(struct fixture *fixture, const char *exec, uint64_t total, size_t piece)
{
    uint64_t offsets[2] = {0, 0};
    uint8_t data[4096];

    for (uint64_t position = 0; position < total; position += piece) {
        size_t stream = position / piece % 2;
        struct batch *batch = fixture_batch(fixture);
        for (size_t i = 0; i < piece; i++)
            data[i] = (uint8_t)((position + i) % 251);
        batch_add_output(batch, &(struct store_output){.exec = exec,
                                                       .stream = (uint8_t)(stream + 1),
                                                       .offset = offsets[stream],
                                                       .position = position,
                                                       .data = data,
                                                       .length = piece});
        offsets[stream] += piece;
        assert_int_equal(fixture_submit(fixture, batch), 0);
    }
}

TEST(output_is_read_from_any_byte)
{
    struct fixture fixture = fixture_new();
    const uint64_t starts[] = {0, 1, 999, 1000, 1001, 2500, 19999};

    fixture_open(&fixture);
    add_exec(&fixture, "ex_1", "sb_1");
    add_exec(&fixture, "ex_2", "sb_1");
    add_output(&fixture, "ex_1", 20000, 1000);
    add_output(&fixture, "ex_2", 100, 10);
    for (size_t i = 0; i < COUNT(starts); i++) {
        read_output(&fixture, "ex_1", starts[i], 1 << 20);
        assert_int_equal(seen.result, 0);
        assert_int_equal(seen.output_length, 20000 - starts[i]);
        assert_int_equal(seen.first_position, starts[i]);
        assert_int_equal(seen.next, 0);
        for (size_t j = 0; j < seen.output_length; j++)
            assert_int_equal(seen.output[j], (starts[i] + j) % 251);
    }
    read_output(&fixture, "ex_1", 2500, 1000);
    assert_int_equal(seen.next, 4000);
    read_output(&fixture, "ex_1", 20000, 1000);
    assert_int_equal(seen.count, 0);
    read_output(&fixture, "ex_1", UINT64_MAX, 1000);
    assert_int_equal(seen.count, 0);
    read_output(&fixture, "ex_3", 0, 1000);
    assert_int_equal(seen.result, -ENOENT);
    fixture_close(&fixture);
    fixture_remove(&fixture);
}

TEST(the_newest_output_is_kept)
{
    struct fixture fixture = fixture_new();
    uint64_t total = 3 << 20;

    fixture_open(&fixture); /* keeps 1 MiB */
    add_exec(&fixture, "ex_1", "sb_1");
    add_output(&fixture, "ex_1", total, 4096);
    begin(&fixture);
    assert_non_null(query_output_end(fixture.store, "ex_1", saw_end, NULL));
    fixture_await(&fixture);
    assert_int_equal(seen.end.position, total);
    assert_int_equal(seen.end.offsets[0], total / 2);
    assert_int_equal(seen.end.offsets[1], total / 2);
    assert_int_equal(seen.end.first, total - (1 << 20));
    read_output(&fixture, "ex_1", 0, 10);
    assert_int_equal(seen.first_position, total - (1 << 20));
    assert_int_equal(seen.output[0], (total - (1 << 20)) % 251);
    fixture_close(&fixture);
    fixture_remove(&fixture);
}

TEST(output_comes_in_order_or_not_at_all)
{
    struct fixture fixture = fixture_new();
    const struct store_output wrong[] = {
        {.exec = "ex_1", .stream = 1, .offset = 5, .position = 5, .data = "x", .length = 1},
        {.exec = "ex_1", .stream = 1, .offset = 90, .position = 80, .data = "x", .length = 1},
        {.exec = "ex_1", .stream = 3, .offset = 10, .position = 10, .data = "x", .length = 1},
        {.exec = "ex_9", .stream = 1, .offset = 0, .position = 0, .data = "x", .length = 1},
    };

    fixture_open(&fixture);
    add_exec(&fixture, "ex_1", "sb_1");
    add_output(&fixture, "ex_1", 10, 10);
    for (size_t i = 0; i < COUNT(wrong); i++) {
        struct batch *batch = fixture_batch(&fixture);
        batch_add_output(batch, &wrong[i]);
        assert_true(fixture_submit(&fixture, batch) < 0);
    }
    begin(&fixture);
    assert_non_null(query_output_end(fixture.store, "ex_1", saw_end, NULL));
    fixture_await(&fixture);
    assert_int_equal(seen.end.position, 10);
    fixture_close(&fixture);
    fixture_remove(&fixture);
}

TEST(settings_come_and_go)
{
    struct fixture fixture = fixture_new();

    fixture_open(&fixture);
    struct batch *batch = fixture_batch(&fixture);
    batch_set_setting(batch, "rate", "60");
    batch_set_setting(batch, "mode", "strict");
    batch_set_setting(batch, "rate", "61");
    batch_set_setting(batch, "mode", NULL);
    assert_int_equal(fixture_submit(&fixture, batch), 0);
    begin(&fixture);
    assert_non_null(query_settings(fixture.store, saw_settings, NULL));
    fixture_await(&fixture);
    assert_int_equal(seen.count, 1);
    assert_string_equal(seen.names[0], "rate=61");
    fixture_close(&fixture);
    fixture_remove(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sandboxes_are_listed_newest_first),
        cmocka_unit_test(a_sandbox_changes),
        cmocka_unit_test(pages_lead_through_everything),
        cmocka_unit_test(the_index_catches_up),
        cmocka_unit_test(execs_that_ran_are_found_after_a_restart),
        cmocka_unit_test(output_is_read_from_any_byte),
        cmocka_unit_test(the_newest_output_is_kept),
        cmocka_unit_test(output_comes_in_order_or_not_at_all),
        cmocka_unit_test(settings_come_and_go),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
