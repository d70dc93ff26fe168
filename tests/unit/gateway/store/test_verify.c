/* Somebody else writes to the database; the audit log says which record is not what it was. */
#include "fixture.h"

enum { RECORDS = 40, TARGET = 17 };

static void fill(struct fixture *fixture)
{
    char detail[40];

    fixture_open(fixture);
    struct batch *batch = fixture_batch(fixture);
    batch_add_exec(batch, &(struct store_exec){.id = "ex_out", .state = "running", .started_ms = 1});
    batch_add_output(batch, &(struct store_output){.exec = "ex_out", .stream = 1, .data = "hello", .length = 5});
    batch_add_output(
        batch, &(struct store_output){.exec = "ex_out", .stream = 2, .position = 5, .data = "world", .length = 5});
    for (int i = 1; i <= RECORDS; i++) {
        (void)snprintf(detail, sizeof detail, "{\"n\":%d}", i);
        batch_add_audit(batch, &(struct store_audit){.time_ms = 1000 + i,
                                                     .principal = "key_a",
                                                     .agent = i % 2 == 0 ? "agent" : NULL,
                                                     .sandbox = "sb_1",
                                                     .exec = i == TARGET ? "ex_out" : NULL,
                                                     .action = "exec.end",
                                                     .verdict = STORE_DENIED,
                                                     .detail = detail,
                                                     .with_output = i == TARGET});
    }
    assert_int_equal(fixture_submit(fixture, batch), 0);
    assert_int_equal(fixture->audit_number, RECORDS);
}

TEST(an_untouched_log_is_well)
{
    struct fixture fixture = fixture_new();

    fill(&fixture);
    struct store_verdict_of_log verdict = fixture_verify(&fixture);
    assert_true(verdict.intact);
    assert_string_equal(fixture.message, "");
    assert_int_equal(verdict.checked, RECORDS);
    assert_int_equal(verdict.first, 1);
    assert_int_equal(verdict.last, RECORDS);
    fixture_close(&fixture);
    fixture_open(&fixture);
    fixture_audit(&fixture, NULL, NULL, 0);
    verdict = fixture_verify(&fixture);
    assert_true(verdict.intact);
    assert_int_equal(verdict.last, RECORDS + 1);
    fixture_close(&fixture);
    fixture_remove(&fixture);
}

TEST(an_empty_log_is_well)
{
    struct fixture fixture = fixture_new();

    fixture_open(&fixture);
    assert_true(fixture_verify(&fixture).intact);
    fixture_close(&fixture);
    fixture_remove(&fixture);
}

TEST(every_change_is_found)
{
    static const struct {
        const char *sql;
        uint64_t bad;
    } rows[] = {
        {"UPDATE audit SET time_ms = time_ms + 1 WHERE number = 17", 17},
        {"UPDATE audit SET principal = 'key_b' WHERE number = 17", 17},
        {"UPDATE audit SET principal = NULL WHERE number = 17", 17},
        {"UPDATE audit SET agent = '' WHERE number = 17", 17},
        {"UPDATE audit SET agent = 'agenta' WHERE number = 16", 16},
        {"UPDATE audit SET agent = 'agent' || char(0) || 'x' WHERE number = 16", 16},
        {"UPDATE audit SET sandbox = 'sb_2' WHERE number = 17", 17},
        {"UPDATE audit SET exec = 'ex_2' WHERE number = 17", 17},
        {"UPDATE audit SET exec = '' WHERE number = 16", 16},
        {"UPDATE audit SET action = 'exec.start' WHERE number = 17", 17},
        {"UPDATE audit SET verdict = 0 WHERE number = 17", 17},
        {"UPDATE audit SET verdict = 1 + 4294967296 WHERE number = 17", 17},
        {"UPDATE audit SET detail = '{}' WHERE number = 17", 17},
        {"UPDATE audit SET output_hash = NULL WHERE number = 17", 17},
        {"UPDATE audit SET output_hash = zeroblob(32) WHERE number = 17", 17},
        {"UPDATE audit SET output_hash = zeroblob(32) WHERE number = 16", 16},
        {"UPDATE audit SET output_hash = zeroblob(31) WHERE number = 16", 16},
        {"UPDATE audit SET previous = zeroblob(32) WHERE number = 17", 17},
        {"UPDATE audit SET hash = zeroblob(32) WHERE number = 17", 17},
        {"UPDATE audit SET hash = zeroblob(32) WHERE number = 40", 40},
        {"DELETE FROM audit WHERE number = 17", 17},
        {"DELETE FROM audit WHERE number = 1", 1},
        {"DELETE FROM audit WHERE number = 40", 40},
        {"DELETE FROM audit WHERE number > 30", 31},
        {"DELETE FROM audit", 1},
        {"UPDATE audit SET number = 100 WHERE number = 17; UPDATE audit SET number = 17 WHERE number = 18;"
         "UPDATE audit SET number = 18 WHERE number = 100",
         17},
        {"UPDATE audit SET number = 41 WHERE number = 17", 17},
        {"INSERT INTO audit SELECT 41, time_ms, principal, agent, sandbox, exec, action, verdict, detail, output_hash, "
         "previous, hash FROM audit WHERE number = 40",
         41},
        {"INSERT INTO audit SELECT 0, time_ms, principal, agent, sandbox, exec, action, verdict, detail, output_hash, "
         "previous, hash FROM audit WHERE number = 40",
         0},
        {"UPDATE chain SET number = 17 WHERE name = 'anchor'", 1},
        {"UPDATE chain SET hash = (SELECT hash FROM audit WHERE number = 16), number = 17 WHERE name = 'anchor';"
         "DELETE FROM audit WHERE number <= 17",
         18},
        {"UPDATE chain SET number = 39 WHERE name = 'head'", 40},
        {"UPDATE chain SET hash = zeroblob(32) WHERE name = 'head'", 40},
        {"DELETE FROM chain WHERE name = 'head'", 1},
        {"UPDATE output SET data = x'68656c6c70' WHERE position = 0", 17},
        {"UPDATE output SET data = x'68656c6c' WHERE position = 0", 17},
        {"UPDATE output SET stream = 2 WHERE position = 0", 17},
        {"UPDATE output SET stream = 257 WHERE position = 0", 17},
        {"UPDATE output SET offset = 1 WHERE position = 0", 17},
        {"UPDATE output SET position = 1 WHERE position = 0", 17},
        {"UPDATE output SET previous = zeroblob(32) WHERE position = 5", 17},
        {"UPDATE output SET hash = zeroblob(32) WHERE position = 5", 17},
        {"DELETE FROM output WHERE position = 5", 17},
        {"DELETE FROM output", 17},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct fixture fixture = fixture_new();
        fill(&fixture);
        fixture_tamper(&fixture, rows[i].sql);
        struct store_verdict_of_log verdict = fixture_verify(&fixture);
        assert_row(rows[i].sql, fixture.message[0] != '\0' && !verdict.intact);
        if (verdict.bad != rows[i].bad)
            fail_msg("%s: %s", rows[i].sql, fixture.message);
        fixture_close(&fixture);
        fixture_remove(&fixture);
    }
}

/* A record put in place of another, with all hashes from there to the end made anew, but for the head. */
TEST(the_message_names_the_record)
{
    struct fixture fixture = fixture_new();

    fill(&fixture);
    fixture_tamper(&fixture, "UPDATE audit SET detail = '{}' WHERE number = 17");
    struct store_verdict_of_log verdict = fixture_verify(&fixture);
    assert_int_equal(verdict.bad, 17);
    assert_int_equal(verdict.checked, 16);
    assert_non_null(strstr(fixture.message, "17"));
    fixture_close(&fixture);
    fixture_remove(&fixture);
}

static void prune(struct fixture *fixture, struct store_retention retention)
{
    fixture->answered = false;
    assert_non_null(store_prune(fixture->store, &retention, fixture_done, fixture));
    fixture_await(fixture);
    assert_int_equal(fixture->result, 0);
}

TEST(a_pruned_log_is_well)
{
    struct fixture fixture = fixture_new();
    struct store_verdict_of_log verdict;

    fill(&fixture);
    prune(&fixture, (struct store_retention){.audit_keep = 30});
    verdict = fixture_verify(&fixture);
    assert_string_equal(fixture.message, "");
    assert_int_equal(verdict.first, 11);
    assert_int_equal(verdict.checked, 30);
    prune(&fixture, (struct store_retention){.audit_before_ms = 1000 + 25});
    verdict = fixture_verify(&fixture);
    assert_string_equal(fixture.message, "");
    assert_int_equal(verdict.first, 25);
    assert_int_equal(verdict.last, RECORDS);
    prune(&fixture, (struct store_retention){.audit_before_ms = INT64_MAX});
    verdict = fixture_verify(&fixture);
    assert_string_equal(fixture.message, "");
    assert_int_equal(verdict.checked, 0);
    fixture_audit(&fixture, NULL, NULL, 0);
    assert_int_equal(fixture.audit_number, RECORDS + 1);
    verdict = fixture_verify(&fixture);
    assert_string_equal(fixture.message, "");
    assert_int_equal(verdict.checked, 1);
    fixture_tamper(&fixture, "UPDATE audit SET detail = 'x'");
    assert_int_equal(fixture_verify(&fixture).bad, RECORDS + 1);
    fixture_close(&fixture);
    fixture_remove(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_untouched_log_is_well), cmocka_unit_test(an_empty_log_is_well),
        cmocka_unit_test(every_change_is_found),    cmocka_unit_test(the_message_names_the_record),
        cmocka_unit_test(a_pruned_log_is_well),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
