/* Groups, failures and the end of the process in the middle of it all. */
#include "base/clock.h"
#include "fixture.h"

#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>

enum { LOAD = 64, ROUNDS = 6 };

TEST(what_waits_goes_into_one_transaction)
{
    struct fixture fixture = fixture_new();
    struct store_stats stats;

    fixture_open(&fixture);
    for (int i = 0; i < 2000; i++) {
        struct batch *batch = fixture_batch(&fixture);
        batch_add_audit(batch, &(struct store_audit){.action = "x"});
        assert_non_null(batch_submit(batch, i == 1999 ? fixture_done : NULL, &fixture));
    }
    fixture_await(&fixture);
    store_get_stats(fixture.store, &stats);
    assert_int_equal(stats.batches, 2000);
    assert_true(stats.groups < 1000);
    assert_int_equal(fixture_verify(&fixture).last, 2000);
    fixture_close(&fixture);
    fixture_remove(&fixture);
}

static void count_results(void *data, const struct store_outcome *outcome)
{
    int *counts = data;

    counts[outcome->result == 0 ? 0 : outcome->result == -EEXIST ? 1 : 2]++;
}

/* One batch that can't be recorded takes none of its neighbours with it, and nothing of itself stays. */
TEST(a_bad_batch_fails_alone)
{
    struct fixture fixture = fixture_new();
    int counts[3] = {0};

    fixture_open(&fixture);
    for (int i = 0; i < 300; i++) {
        char id[40];
        struct batch *batch = fixture_batch(&fixture);
        (void)snprintf(id, sizeof id, "sb_%d", i % 3 == 2 ? i - 1 : i);
        batch_add_audit(batch, &(struct store_audit){.action = "create", .sandbox = id});
        batch_add_sandbox(batch, &(struct store_sandbox){.id = id, .status = "ready"});
        (void)batch_submit(batch, count_results, counts);
    }
    (void)uv_run(&fixture.loop, UV_RUN_DEFAULT);
    assert_int_equal(counts[0], 200);
    assert_int_equal(counts[1], 100);
    assert_true(store_can_record(fixture.store));
    struct store_verdict_of_log verdict = fixture_verify(&fixture);
    assert_true(verdict.intact);
    assert_int_equal(verdict.last, 200);
    fixture_close(&fixture);
    fixture_remove(&fixture);
}

TEST(the_queue_has_a_cap)
{
    struct fixture fixture = fixture_new();
    struct store_options options = {.folder = fixture.folder, .queue_bytes = 100000};
    struct error err;
    static char text[20000];
    int counts[3] = {0};

    memset(text, 'x', sizeof text - 1);
    assert_int_equal(uv_loop_init(&fixture.loop), 0);
    assert_int_equal(store_open(&options, &fixture.loop, &fixture.store, &err), 0);
    for (int i = 0; i < 10; i++) {
        struct batch *batch = fixture_batch(&fixture);
        batch_add_audit(batch, &(struct store_audit){.action = "x", .detail = text});
        (void)batch_submit(batch, count_results, counts);
    }
    (void)uv_run(&fixture.loop, UV_RUN_DEFAULT);
    assert_int_equal(counts[0], 4);
    assert_int_equal(counts[2], 6);
    fixture_audit(&fixture, NULL, NULL, 0);
    fixture_close(&fixture);
    fixture_remove(&fixture);
}

TEST(a_batch_has_a_cap)
{
    struct fixture fixture = fixture_new();
    static char text[1 << 20];

    fixture_open(&fixture);
    memset(text, 'x', sizeof text - 1);
    struct batch *batch = fixture_batch(&fixture);
    for (int i = 0; i < 9; i++)
        batch_add_audit(batch, &(struct store_audit){.action = "x", .detail = text});
    assert_int_equal(fixture_submit(&fixture, batch), -ENOBUFS);
    assert_int_equal(fixture_verify(&fixture).last, 0);
    fixture_close(&fixture);
    fixture_remove(&fixture);
}

static size_t fill(const struct fixture *fixture)
{
    static char block[65536];
    char path[256];
    size_t total = 0;

    (void)snprintf(path, sizeof path, "%s/ballast", fixture->folder);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    for (size_t step = sizeof block; step > 0; step /= 2) {
        while (write(fd, block, step) == (ssize_t)step)
            total += step;
    }
    (void)close(fd);
    return total;
}

TEST(a_full_disk_stops_recording_until_there_is_room)
{
    struct fixture fixture = fixture_new();
    char ballast[256];
    uint64_t recorded = 0;
    struct store_stats stats;

    assert_return_code(unshare(CLONE_NEWNS), errno);
    assert_return_code(sys_mount(NULL, "/", NULL, MS_REC | MS_PRIVATE), errno);
    assert_return_code(mount("tmpfs", fixture.folder, "tmpfs", 0, "size=4m"), errno);
    fixture_open(&fixture);
    fixture_audit(&fixture, "sb_1", "{}", 0);
    assert_true(fill(&fixture) > 0);
    for (;;) {
        struct batch *batch = fixture_batch(&fixture);
        batch_add_audit(batch, &(struct store_audit){.action = "x"});
        if (fixture_submit(&fixture, batch) < 0)
            break;
        recorded = fixture.audit_number;
    }
    assert_int_equal(fixture.result, -ENOSPC);
    assert_non_null(strstr(fixture.message, "full"));
    assert_false(store_can_record(fixture.store));
    store_get_stats(fixture.store, &stats);
    assert_non_null(strstr(stats.failure, "full"));
    struct batch *later = fixture_batch(&fixture);
    batch_add_audit(later, &(struct store_audit){.action = "x"});
    assert_int_equal(fixture_submit(&fixture, later), -ENOSPC);
    (void)snprintf(ballast, sizeof ballast, "%s/ballast", fixture.folder);
    assert_return_code(unlink(ballast), errno);
    uint64_t until_ns = clock_now_ns() + 5000000000U;
    while (!store_can_record(fixture.store) && clock_now_ns() < until_ns)
        (void)usleep(10000);
    assert_true(store_can_record(fixture.store));
    fixture_audit(&fixture, "sb_1", "{}", 0);
    assert_true(fixture.audit_number > recorded);
    assert_true(fixture_verify(&fixture).intact);
    assert_int_equal(fixture_verify(&fixture).last, fixture.audit_number);
    store_get_stats(fixture.store, &stats);
    assert_string_equal(stats.failure, "");
    fixture_close(&fixture);
    assert_return_code(umount(fixture.folder), errno);
    fixture_remove(&fixture);
}

struct load {
    struct fixture fixture;
    int out; /* where acknowledged numbers go */
    uint64_t next;
};

struct load_call {
    struct load *load;
    uint64_t number;
};

static void submit_load(struct load *load);

static void acknowledged(void *data, const struct store_outcome *outcome)
{
    struct load_call *call = data;
    const uint64_t pair[2] = {call->number, outcome->audit_number};

    if (outcome->result != 0 || write(call->load->out, pair, sizeof pair) != sizeof pair)
        _exit(1);
    submit_load(call->load);
    free(call);
}

static void submit_load(struct load *load)
{
    struct load_call *call = malloc(sizeof *call);
    struct batch *batch = batch_new(load->fixture.store);
    char id[40];
    char detail[40];

    if (call == NULL || batch == NULL)
        _exit(1);
    *call = (struct load_call){.load = load, .number = load->next++};
    (void)snprintf(id, sizeof id, "ex_%d_%llu", (int)getpid(), (unsigned long long)call->number);
    (void)snprintf(detail, sizeof detail, "%llu", (unsigned long long)call->number);
    batch_add_exec(batch, &(struct store_exec){.id = id, .state = "running", .started_ms = 1});
    batch_add_output(batch, &(struct store_output){.exec = id, .stream = 1, .data = detail, .length = strlen(detail)});
    batch_add_audit(batch, &(struct store_audit){.exec = id, .action = "x", .detail = detail, .with_output = true});
    (void)batch_submit(batch, acknowledged, call);
}

/* The process that will be killed: it records for ever, and says what was acknowledged. */
static void run_load(const char *folder, enum store_sync sync, int out)
{
    struct load load = {.out = out};
    struct error err;

    (void)snprintf(load.fixture.folder, sizeof load.fixture.folder, "%s", folder);
    struct store_options options = {.folder = folder, .sync = sync};
    if (uv_loop_init(&load.fixture.loop) != 0 ||
        store_open(&options, &load.fixture.loop, &load.fixture.store, &err) < 0)
        _exit(2);
    for (int i = 0; i < LOAD; i++)
        submit_load(&load);
    (void)uv_run(&load.fixture.loop, UV_RUN_DEFAULT);
    _exit(3);
}

static uint64_t kill_in_the_middle(const char *folder, enum store_sync sync, int delay_ms)
{
    int ends[2];
    uint64_t pair[2];
    uint64_t last = 0;

    assert_return_code(pipe2(ends, O_CLOEXEC), errno);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        run_load(folder, sync, ends[1]);
    (void)close(ends[1]);
    uint64_t kill_ns = 0;
    while (read(ends[0], pair, sizeof pair) == sizeof pair) {
        last = pair[1] > last ? pair[1] : last;
        if (kill_ns == 0)
            kill_ns = clock_now_ns() + (uint64_t)delay_ms * 1000000U;
        if (clock_now_ns() >= kill_ns)
            (void)kill(pid, SIGKILL);
    }
    (void)close(ends[0]);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    return last;
}

static void nothing_is_lost(enum store_sync sync)
{
    struct fixture fixture = fixture_new();

    for (int i = 0; i < ROUNDS; i++) {
        uint64_t last = kill_in_the_middle(fixture.folder, sync, 20 + i * 37);
        assert_true(last > 0);
        fixture_open(&fixture);
        struct store_verdict_of_log verdict = fixture_verify(&fixture);
        assert_string_equal(fixture.message, "");
        assert_true(verdict.intact);
        assert_true(verdict.last >= last);
        fixture_close(&fixture);
    }
    fixture_remove(&fixture);
}

TEST(kill_loses_nothing_that_was_acknowledged)
{
    nothing_is_lost(STORE_SYNC_INTERVAL);
}

TEST(kill_loses_nothing_when_every_write_waits_for_the_disk)
{
    nothing_is_lost(STORE_SYNC_ALWAYS);
}

static void always_writes(struct fixture *fixture, enum store_sync sync, int count, struct store_stats *ret_stats)
{
    struct error err;

    assert_int_equal(fixture_try_open(fixture, sync, &err), 0);
    for (int i = 0; i < count; i++)
        fixture_audit(fixture, "sb_1", "{}", 0);
    store_get_stats(fixture->store, ret_stats);
    fixture_close(fixture);
}

TEST(syncs_are_as_many_as_was_asked_for)
{
    struct fixture fixture = fixture_new();
    struct store_stats stats;

    always_writes(&fixture, STORE_SYNC_ALWAYS, 20, &stats);
    assert_true(stats.syncs >= 20);
    fixture_open(&fixture);
    uint64_t start_ns = clock_now_ns();
    while (clock_now_ns() - start_ns < 500000000U) {
        fixture_audit(&fixture, "sb_1", "{}", 0);
        (void)usleep(2000);
    }
    store_get_stats(fixture.store, &stats);
    assert_in_range(stats.syncs, 4, 12); /* each at most 100 ms after the first write it covers */
    fixture_close(&fixture);
    fixture_remove(&fixture);
}

TEST(the_log_is_copied_and_started_anew)
{
    struct fixture fixture = fixture_new();
    static char text[60000];
    struct store_stats stats;
    uint64_t most = 0;
    bool anew = false;
    uint64_t until_ns = clock_now_ns() + 30000000000U;

    memset(text, 'x', sizeof text - 1);
    fixture_open(&fixture);
    while (!anew && clock_now_ns() < until_ns) {
        struct batch *batch = fixture_batch(&fixture);
        batch_add_audit(batch, &(struct store_audit){.action = "x", .detail = text});
        assert_int_equal(fixture_submit(&fixture, batch), 0);
        store_get_stats(fixture.store, &stats);
        anew = stats.wal_pages < most;
        most = stats.wal_pages > most ? stats.wal_pages : most;
    }
    assert_true(anew);
    assert_true(stats.checkpoints > 0);
    assert_true(most >= 4096);
    assert_true(fixture_verify(&fixture).intact);
    fixture_close(&fixture);
    fixture_remove(&fixture);
}

static void add_ended_exec(struct fixture *fixture, int number, int64_t ended_ms, size_t length)
{
    static char text[1 << 16];
    char id[40];
    struct batch *batch = fixture_batch(fixture);

    memset(text, 'o', sizeof text);
    (void)snprintf(id, sizeof id, "ex_%d", number);
    batch_add_exec(batch, &(struct store_exec){.id = id, .sandbox = "sb_1", .state = "ended", .ended_ms = ended_ms});
    for (size_t at = 0; at < length; at += sizeof text)
        batch_add_output(
            batch, &(struct store_output){
                       .exec = id, .stream = 1, .offset = at, .position = at, .data = text, .length = sizeof text});
    batch_add_audit(batch, &(struct store_audit){.exec = id, .action = "exec.end", .with_output = true});
    assert_int_equal(fixture_submit(fixture, batch), 0);
}

static void prune(struct fixture *fixture, struct store_retention retention)
{
    fixture->answered = false;
    assert_non_null(store_prune(fixture->store, &retention, fixture_done, fixture));
    fixture_await(fixture);
    assert_int_equal(fixture->result, 0);
}

static void count_rows(void *data, const struct store_page *page)
{
    void **both = data;

    ((struct fixture *)both[0])->answered = true;
    *(size_t *)both[1] = page->count;
}

static size_t count_execs(struct fixture *fixture)
{
    size_t count = 0;
    void *both[] = {fixture, &count};

    fixture->answered = false;
    assert_non_null(query_execs(fixture->store, &(struct exec_filter){.limit = 1000}, count_rows, both));
    fixture_await(fixture);
    return count;
}

TEST(what_is_old_or_too_much_goes)
{
    struct fixture fixture = fixture_new();

    fixture_open(&fixture);
    struct batch *batch = fixture_batch(&fixture);
    batch_add_sandbox(batch, &(struct store_sandbox){.id = "sb_1", .status = "gone", .ended_ms = 50});
    batch_add_exec(batch, &(struct store_exec){.id = "ex_live", .state = "running"});
    assert_int_equal(fixture_submit(&fixture, batch), 0);
    for (int i = 0; i < 40; i++)
        add_ended_exec(&fixture, i, 100 + i, 1 << 20);
    prune(&fixture, (struct store_retention){.ended_before_ms = 110});
    assert_int_equal(count_execs(&fixture), 31);
    assert_true(fixture_verify(&fixture).intact);
    prune(&fixture, (struct store_retention){.database_bytes = 10 << 20});
    assert_in_range(count_execs(&fixture), 8, 11);
    assert_true(fixture_verify(&fixture).intact);
    prune(&fixture, (struct store_retention){.ended_before_ms = INT64_MAX});
    assert_int_equal(count_execs(&fixture), 1);
    size_t sandboxes = 9;
    void *both[] = {&fixture, &sandboxes};
    fixture.answered = false;
    assert_non_null(query_sandboxes(fixture.store, &(struct sandbox_filter){0}, count_rows, both));
    fixture_await(&fixture);
    assert_int_equal(sandboxes, 0);
    fixture_close(&fixture);
    fixture_remove(&fixture);
}

/* While thousands of rows go, a write still takes no longer than a slice and its own time. */
TEST(pruning_does_not_hold_up_writes)
{
    struct fixture fixture = fixture_new();
    uint64_t longest_ns = 0;
    struct fixture other = {0};

    fixture_open(&fixture);
    for (int i = 0; i < 40; i++) {
        struct batch *batch = fixture_batch(&fixture);
        for (int j = 0; j < 500; j++)
            batch_add_audit(batch, &(struct store_audit){.time_ms = 5, .action = "x", .agent = "a", .sandbox = "sb"});
        assert_int_equal(fixture_submit(&fixture, batch), 0);
    }
    assert_non_null(store_prune(fixture.store, &(struct store_retention){.audit_before_ms = 6}, fixture_done, &other));
    size_t writes = 0;
    for (; !other.answered; writes++) {
        uint64_t start_ns = clock_now_ns();
        fixture_audit(&fixture, "sb_1", "{}", 10);
        uint64_t took_ns = clock_now_ns() - start_ns;
        longest_ns = took_ns > longest_ns ? took_ns : longest_ns;
    }
    assert_int_equal(other.result, 0);
    assert_true(writes >= 3);
    assert_true(longest_ns < 500000000U);
    struct store_verdict_of_log verdict = fixture_verify(&fixture);
    assert_true(verdict.intact);
    assert_int_equal(verdict.first, 20001);
    fixture_close(&fixture);
    fixture_remove(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_waits_goes_into_one_transaction),
        cmocka_unit_test(a_bad_batch_fails_alone),
        cmocka_unit_test(the_queue_has_a_cap),
        cmocka_unit_test(a_batch_has_a_cap),
        cmocka_unit_test(kill_loses_nothing_that_was_acknowledged),
        cmocka_unit_test(kill_loses_nothing_when_every_write_waits_for_the_disk),
        cmocka_unit_test(syncs_are_as_many_as_was_asked_for),
        cmocka_unit_test(the_log_is_copied_and_started_anew),
        cmocka_unit_test(what_is_old_or_too_much_goes),
        cmocka_unit_test(pruning_does_not_hold_up_writes),
        cmocka_unit_test(a_full_disk_stops_recording_until_there_is_room),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
