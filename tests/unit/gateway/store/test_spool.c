/* What was spooled is found by the next store, whenever the one before ended. */
#include "fixture.h"
#include "gateway/store/core.h"
#include "gateway/store/spool.h"
#include "gateway/store/spool_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>

enum { CAP = 300000, PIECE = 50000, OUTPUT_MAX = 4 << 20 };

/* Both streams are parts of one text, so that a byte says where it belongs. */
static uint8_t text[OUTPUT_MAX];

static uint8_t read_back[OUTPUT_MAX];
static size_t read_length;
static uint64_t read_first;

static void make_text(void)
{
    uint32_t state = 1;

    for (size_t i = 0; i < sizeof text; i++) {
        state = state * 1664525 + 1013904223;
        text[i] = (uint8_t)(state >> 24);
    }
}

static void add_exec(struct fixture *fixture, const char *id)
{
    struct batch *batch = fixture_batch(fixture);

    batch_add_exec(batch, &(struct store_exec){.id = id, .state = "running", .started_ms = 1});
    assert_int_equal(fixture_submit(fixture, batch), 0);
}

static struct spool *open_spooling(struct fixture *fixture, const char *exec)
{
    *fixture = fixture_new();
    make_text();
    fixture_open(fixture);
    add_exec(fixture, "ex_1");
    struct spool *spool = spool_new(fixture->store, exec, CAP);
    assert_non_null(spool);
    return spool;
}

static int write_spool(struct fixture *fixture, struct spool *spool, const struct store_output *pieces, size_t count)
{
    fixture->answered = false;
    assert_true(spool_write(spool, pieces, count, fixture_done, fixture));
    fixture_await(fixture);
    return fixture->result;
}

/* From `position` on; the streams take turns, `stride` bytes each. */
static struct store_output piece_at(uint64_t position, size_t length, size_t stride)
{
    uint64_t turn = position / stride;

    return (struct store_output){.stream = (uint8_t)(1 + turn % 2),
                                 .position = position,
                                 .offset = turn / 2 * stride + position % stride,
                                 .data = text + position,
                                 .length = length};
}

static void spool_up_to(struct fixture *fixture, struct spool *spool, uint64_t from, uint64_t until, size_t stride)
{
    struct store_output pieces[SPOOL_PIECES_MAX];

    while (from < until) {
        size_t count = 0;
        for (size_t bytes = 0; from < until && count < SPOOL_PIECES_MAX && bytes < 2 * PIECE; count++) {
            size_t length = stride - from % stride < PIECE ? stride - from % stride : PIECE;
            length = until - from < length ? (size_t)(until - from) : length;
            pieces[count] = piece_at(from, length, stride);
            from += length;
            bytes += length;
        }
        assert_int_equal(write_spool(fixture, spool, pieces, count), 0);
    }
}

static size_t stride_read;

static void saw_output(void *data, const struct store_page *page)
{
    struct fixture *fixture = data;

    fixture->answered = true;
    fixture->result = page->result;
    for (size_t i = 0; i < page->count; i++) {
        const struct store_output *row = &page->outputs[i];
        if (read_length == 0)
            read_first = row->position;
        assert_int_equal(row->position, read_first + read_length);
        struct store_output wanted = piece_at(row->position, row->length, stride_read);
        assert_int_equal(row->stream, wanted.stream);
        assert_int_equal(row->offset, wanted.offset);
        memcpy(read_back + read_length, row->data, row->length);
        read_length += row->length;
    }
    fixture->audit_number = page->next;
}

/* All that the database has of it, which is without a gap and part of the text. */
static void read_database(struct fixture *fixture, uint64_t from, size_t stride)
{
    uint64_t position = from;

    read_length = 0;
    stride_read = stride;
    do {
        fixture->answered = false;
        assert_non_null(query_output(fixture->store, "ex_1", position, 1 << 20, saw_output, fixture));
        fixture_await(fixture);
        assert_int_equal(fixture->result, 0);
        position = fixture->audit_number;
    } while (position != 0);
    assert_memory_equal(read_back, text + read_first, read_length);
}

static size_t count_spools(const struct fixture *fixture)
{
    char path[256];
    size_t count = 0;

    (void)snprintf(path, sizeof path, "%s/spool", fixture->folder);
    DIR *entries = opendir(path);
    assert_non_null(entries);
    for (const struct dirent *entry; (entry = readdir(entries)) != NULL;)
        count += entry->d_name[0] != '.';
    (void)closedir(entries);
    return count;
}

static void reopen(struct fixture *fixture)
{
    fixture_close(fixture);
    fixture_open(fixture);
}

TEST(what_was_spooled_is_recorded_at_the_next_start)
{
    struct fixture fixture;
    struct spool *spool = open_spooling(&fixture, "ex_1");

    spool_up_to(&fixture, spool, 0, 100001, OUTPUT_MAX);
    assert_int_equal(count_spools(&fixture), 1);
    spool_free(spool, false);
    reopen(&fixture);
    read_database(&fixture, 0, OUTPUT_MAX);
    assert_int_equal(read_first, 0);
    assert_int_equal(read_length, 100001);
    assert_int_equal(count_spools(&fixture), 0);
    fixture_close(&fixture);
    fixture_remove(&fixture);
}

TEST(the_newest_are_kept_after_many_laps)
{
    struct fixture fixture;
    struct spool *spool = open_spooling(&fixture, "ex_1");

    spool_up_to(&fixture, spool, 0, OUTPUT_MAX - 7, 70001);
    spool_free(spool, false);
    reopen(&fixture);
    read_database(&fixture, 0, 70001);
    assert_int_equal(read_first + read_length, OUTPUT_MAX - 7);
    assert_int_equal(read_length, CAP);
    fixture_close(&fixture);
    fixture_remove(&fixture);
}

TEST(many_short_runs)
{
    enum { RUNS = 2 * SPOOL_RUNS_ROOM, STRIDE = 3 };
    struct fixture fixture;
    struct spool *spool = open_spooling(&fixture, "ex_1");

    spool_up_to(&fixture, spool, 0, RUNS * STRIDE, STRIDE);
    spool_free(spool, false);
    reopen(&fixture);
    read_database(&fixture, 0, STRIDE);
    assert_int_equal(read_first + read_length, RUNS * STRIDE);
    assert_int_equal(read_length, SPOOL_RUNS_KEPT * STRIDE);
    fixture_close(&fixture);
    fixture_remove(&fixture);
}

TEST(it_goes_on_where_the_database_ends)
{
    struct fixture fixture;
    struct spool *spool = open_spooling(&fixture, "ex_1");
    struct batch *batch = fixture_batch(&fixture);

    for (uint64_t at = 0; at < 60000; at += 20000) {
        struct store_output piece = piece_at(at, 20000, OUTPUT_MAX);
        piece.exec = "ex_1";
        batch_add_output(batch, &piece);
    }
    assert_int_equal(fixture_submit(&fixture, batch), 0);
    /* A part of it is known twice, as after a process that ended while it recorded what it had spooled. */
    spool_up_to(&fixture, spool, 40000, 200000, OUTPUT_MAX);
    spool_free(spool, false);
    reopen(&fixture);
    read_database(&fixture, 0, OUTPUT_MAX);
    assert_int_equal(read_first, 0);
    assert_int_equal(read_length, 200000);
    fixture_close(&fixture);
    fixture_remove(&fixture);
}

/* Short runs make the spool start later than its cap says: what the database has of before would leave a gap. */
TEST(what_is_older_than_the_spool_goes)
{
    enum { RUNS = SPOOL_RUNS_ROOM, STRIDE = 4, BEFORE = 8000 * STRIDE };
    struct fixture fixture;
    struct spool *spool = open_spooling(&fixture, "ex_1");
    struct batch *batch = fixture_batch(&fixture);

    for (uint64_t at = 0; at < BEFORE; at += STRIDE) {
        struct store_output piece = piece_at(at, STRIDE, STRIDE);
        piece.exec = "ex_1";
        batch_add_output(batch, &piece);
    }
    assert_int_equal(fixture_submit(&fixture, batch), 0);
    spool_up_to(&fixture, spool, BEFORE, BEFORE + RUNS * STRIDE, STRIDE);
    spool_free(spool, false);
    reopen(&fixture);
    read_database(&fixture, 0, STRIDE);
    assert_int_equal(read_first + read_length, BEFORE + RUNS * STRIDE);
    assert_int_equal(read_length, SPOOL_RUNS_KEPT * STRIDE);
    fixture_close(&fixture);
    fixture_remove(&fixture);
}

static void await_spools(struct fixture *fixture, size_t count)
{
    while (count_spools(fixture) != count)
        (void)uv_run(&fixture->loop, UV_RUN_ONCE);
}

/* The end comes while the write is under way and nothing else is taken any more, or the store closes. */
TEST(the_end_of_a_spool_is_never_refused)
{
    for (int closes = 0; closes < 2; closes++) {
        struct fixture fixture = fixture_new();
        struct store_options options = {.folder = fixture.folder, .queue_bytes = 1400};
        struct store_output piece = piece_at(0, SPOOL_SLACK, OUTPUT_MAX);
        struct error err = {0};

        make_text();
        assert_int_equal(uv_loop_init(&fixture.loop), 0);
        assert_int_equal(store_open(&options, &fixture.loop, &fixture.store, &err), 0);
        struct spool *spool = spool_new(fixture.store, "ex_1", CAP);
        assert_non_null(spool);
        assert_true(spool_write(spool, &piece, 1, fixture_done, &fixture));
        if (closes == 0) {
            spool_free(spool, true);
            fixture_await(&fixture);
            assert_int_equal(fixture.result, 0);
            await_spools(&fixture, 0);
            fixture_close(&fixture);
        } else {
            store_close(fixture.store, NULL, NULL);
            spool_free(spool, true);
            fixture_await(&fixture);
            assert_int_equal(fixture.result, 0);
            assert_int_equal(uv_run(&fixture.loop, UV_RUN_DEFAULT), 0);
            assert_int_equal(count_spools(&fixture), 0);
            assert_int_equal(uv_loop_close(&fixture.loop), 0);
        }
        fixture_remove(&fixture);
    }
}

TEST(what_is_removed_leaves_nothing)
{
    struct fixture fixture;
    struct spool *spool = open_spooling(&fixture, "ex_1");

    spool_up_to(&fixture, spool, 0, 1000, OUTPUT_MAX);
    spool_free(spool, true);
    spool_free(spool_new(fixture.store, "ex_2", CAP), true);
    reopen(&fixture);
    assert_int_equal(count_spools(&fixture), 0);
    read_database(&fixture, 0, OUTPUT_MAX);
    assert_int_equal(read_length, 0);
    fixture_close(&fixture);
    fixture_remove(&fixture);
}

static int open_spool(const struct fixture *fixture, const char *name)
{
    char path[256];

    (void)snprintf(path, sizeof path, "%s/spool/%s", fixture->folder, name);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

/* The process ends after the bytes of a write and before its header. */
TEST(a_write_that_was_not_finished_harms_nothing)
{
    struct fixture fixture;
    struct spool *spool = open_spooling(&fixture, "ex_1");
    uint8_t header[4096];
    enum { BEFORE = 2000000, MOST = SPOOL_SLACK };

    spool_up_to(&fixture, spool, 0, BEFORE, OUTPUT_MAX);
    int fd = open_spool(&fixture, "ex_1");
    assert_int_equal(pread(fd, header, sizeof header, 0), sizeof header);
    struct store_output piece = piece_at(BEFORE, MOST, OUTPUT_MAX);
    assert_int_equal(write_spool(&fixture, spool, &piece, 1), 0);
    assert_int_equal(pwrite(fd, header, sizeof header, 0), sizeof header);
    (void)close(fd);
    spool_free(spool, false);
    reopen(&fixture);
    read_database(&fixture, 0, OUTPUT_MAX);
    assert_int_equal(read_first, BEFORE - CAP);
    assert_int_equal(read_length, CAP);
    fixture_close(&fixture);
    fixture_remove(&fixture);
}

/* Every field of the header in turn: the first by little, the others by much. */
TEST(what_is_not_whole_is_not_believed)
{
    enum { FIELDS = 7, MAGIC_FIELD = 0 };

    for (size_t i = 0; i < FIELDS; i++) {
        struct fixture fixture;
        struct spool *spool = open_spooling(&fixture, "ex_1");
        uint64_t field = 0;

        spool_up_to(&fixture, spool, 0, 2000, 100);
        spool_free(spool, false);
        fixture_close(&fixture);
        int fd = open_spool(&fixture, "ex_1");
        assert_int_equal(pread(fd, &field, sizeof field, (off_t)(i * sizeof field)), sizeof field);
        field += i == MAGIC_FIELD ? 1 : UINT64_C(1) << 40;
        assert_int_equal(pwrite(fd, &field, sizeof field, (off_t)(i * sizeof field)), sizeof field);
        (void)close(fd);
        fixture_open(&fixture);
        read_database(&fixture, 0, 100);
        assert_int_equal(read_length, 0);
        assert_int_equal(count_spools(&fixture), 0);
        fixture_close(&fixture);
        fixture_remove(&fixture);
    }
}

TEST(strangers_are_removed)
{
    struct fixture fixture;
    struct spool *spool = open_spooling(&fixture, "ex_unknown");

    spool_up_to(&fixture, spool, 0, 2000, 100);
    spool_free(spool, false);
    fixture_close(&fixture);
    assert_int_equal(count_spools(&fixture), 1);
    fixture_open(&fixture);
    assert_int_equal(count_spools(&fixture), 0);
    fixture_close(&fixture);
    fixture_remove(&fixture);
}

TEST(pieces_that_do_not_follow)
{
    struct fixture fixture;
    struct spool *spool = open_spooling(&fixture, "ex_1");
    struct store_output gap = piece_at(3000, 1, OUTPUT_MAX);
    struct store_output large = piece_at(2000, SPOOL_SLACK + 1, OUTPUT_MAX);

    spool_up_to(&fixture, spool, 0, 2000, OUTPUT_MAX);
    assert_int_equal(write_spool(&fixture, spool, &gap, 1), -EINVAL);
    assert_int_equal(write_spool(&fixture, spool, &large, 1), -EINVAL);
    spool_up_to(&fixture, spool, 2000, 4000, OUTPUT_MAX);
    spool_free(spool, true);
    fixture_close(&fixture);
    fixture_remove(&fixture);
}

/* All of the space is taken at the start, or the spool is refused and leaves nothing. */
TEST(no_space)
{
    struct fixture fixture;
    struct spool *spool = open_spooling(&fixture, "ex_1");
    struct store_output piece = piece_at(0, 10, OUTPUT_MAX);
    struct rlimit before;

    (void)signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){1 << 20, before.rlim_max}), 0);
    assert_int_equal(write_spool(&fixture, spool, &piece, 1), -EFBIG);
    assert_int_equal(count_spools(&fixture), 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    spool_free(spool, false);
    fixture_close(&fixture);
    fixture_remove(&fixture);
}

static int open_with(struct fixture *fixture, uint64_t spool_bytes, uint64_t reserve_bytes)
{
    struct store_options options = {
        .folder = fixture->folder, .spool_bytes = spool_bytes, .reserve_bytes = reserve_bytes};
    struct error err = {0};

    assert_int_equal(uv_loop_init(&fixture->loop), 0);
    return store_open(&options, &fixture->loop, &fixture->store, &err);
}

static int spool_little(struct fixture *fixture, const char *exec, struct spool **ret_spool)
{
    struct store_output piece = piece_at(0, 10, OUTPUT_MAX);

    *ret_spool = spool_new(fixture->store, exec, CAP);
    assert_non_null(*ret_spool);
    return write_spool(fixture, *ret_spool, &piece, 1);
}

TEST(all_spools_have_a_cap)
{
    struct fixture fixture = fixture_new();
    struct spool *spools[4];

    assert_int_equal(open_with(&fixture, 3 * spool_file_size(CAP) - 1, 1), 0);
    assert_int_equal(spool_little(&fixture, "ex_1", &spools[0]), 0);
    assert_int_equal(spool_little(&fixture, "ex_2", &spools[1]), 0);
    assert_int_equal(spool_little(&fixture, "ex_3", &spools[2]), -ENOSPC);
    assert_int_equal(count_spools(&fixture), 2);
    spool_free(spools[0], true);
    spool_free(spools[2], true);
    assert_int_equal(spool_little(&fixture, "ex_4", &spools[3]), 0);
    assert_int_equal(count_spools(&fixture), 2);
    spool_free(spools[1], true);
    spool_free(spools[3], true);
    fixture_close(&fixture);
    fixture_remove(&fixture);
}

/* A database that can't grow any more: the space of the spools is given back, and it can be written to again. */
TEST(a_full_database_takes_the_spools)
{
    struct fixture fixture;
    struct spool *spool = open_spooling(&fixture, "ex_1");
    struct spool *orphan;
    struct batch *batch = fixture_batch(&fixture);
    struct store_output piece = piece_at(0, SPOOL_SLACK, OUTPUT_MAX);
    struct error full = {.code = ERROR_SYSTEM, .err = ENOSPC};

    spool_up_to(&fixture, spool, 0, 1000, OUTPUT_MAX);
    assert_int_equal(spool_little(&fixture, "ex_2", &orphan), 0);
    spool_free(orphan, false);
    /* Again and again: the writer may find that it can write before the spooler has heard of it. */
    do {
        core_set_failure(fixture.store, &full);
        (void)usleep(1000);
    } while (count_spools(&fixture) > 0);
    piece.exec = "ex_1";
    batch_add_output(batch, &piece);
    do
        (void)usleep(1000);
    while (!store_can_record(fixture.store));
    assert_int_equal(fixture_submit(&fixture, batch), 0);
    piece = piece_at(1000, 10, OUTPUT_MAX);
    assert_int_equal(write_spool(&fixture, spool, &piece, 1), -ENOSPC);
    spool_free(spool, true);
    assert_int_equal(spool_little(&fixture, "ex_4", &spool), 0);
    spool_free(spool, true);
    fixture_close(&fixture);
    assert_int_equal(count_spools(&fixture), 0);
    fixture_remove(&fixture);
}

TEST(a_reserve_is_left_to_the_database)
{
    struct fixture fixture = fixture_new();
    struct spool *spool;

    assert_int_equal(open_with(&fixture, 0, UINT64_C(1) << 60), 0);
    assert_int_equal(spool_little(&fixture, "ex_1", &spool), -ENOSPC);
    assert_int_equal(count_spools(&fixture), 0);
    spool_free(spool, true);
    fixture_close(&fixture);
    fixture_remove(&fixture);
}

/* A disk that is full at the start: the spools make room. */
TEST(without_space_the_spools_go)
{
    struct fixture fixture;
    struct spool *spool = open_spooling(&fixture, "ex_1");
    struct store_stats stats;

    spool_up_to(&fixture, spool, 0, 1000, OUTPUT_MAX);
    spool_free(spool, false);
    assert_int_equal(spool_little(&fixture, "ex_2", &spool), 0);
    spool_free(spool, false);
    fixture_close(&fixture);
    assert_int_equal(count_spools(&fixture), 2);
    assert_int_equal(open_with(&fixture, 0, UINT64_C(1) << 60), 0);
    assert_int_equal(count_spools(&fixture), 0);
    store_get_stats(fixture.store, &stats);
    assert_int_equal(stats.spools_lost, 2);
    read_database(&fixture, 0, OUTPUT_MAX);
    assert_int_equal(read_length, 0);
    fixture_close(&fixture);
    fixture_remove(&fixture);
}

/* Nothing is wrong with the file: it can't be opened now, and waits for the next start. */
TEST(what_can_not_be_opened_stays)
{
    struct fixture fixture;
    struct spool *spool = open_spooling(&fixture, "ex_1");
    struct store_stats stats;
    char path[256];

    spool_free(spool, true);
    fixture_close(&fixture);
    (void)snprintf(path, sizeof path, "%s/spool/ex_1", fixture.folder);
    assert_int_equal(symlink("/", path), 0); /* ELOOP */
    fixture_open(&fixture);
    store_get_stats(fixture.store, &stats);
    assert_int_equal(stats.spools_lost, 1);
    assert_int_equal(count_spools(&fixture), 1);
    fixture_close(&fixture);
    fixture_remove(&fixture);
}

TEST(always_durable_has_no_spools)
{
    struct fixture fixture = fixture_new();
    struct error err = {0};

    assert_int_equal(fixture_try_open(&fixture, STORE_SYNC_ALWAYS, &err), 0);
    assert_null(spool_new(fixture.store, "ex_1", CAP));
    fixture_close(&fixture);
    fixture_remove(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_spooled_is_recorded_at_the_next_start),
        cmocka_unit_test(the_newest_are_kept_after_many_laps),
        cmocka_unit_test(many_short_runs),
        cmocka_unit_test(it_goes_on_where_the_database_ends),
        cmocka_unit_test(what_is_older_than_the_spool_goes),
        cmocka_unit_test(the_end_of_a_spool_is_never_refused),
        cmocka_unit_test(what_is_removed_leaves_nothing),
        cmocka_unit_test(a_write_that_was_not_finished_harms_nothing),
        cmocka_unit_test(what_is_not_whole_is_not_believed),
        cmocka_unit_test(strangers_are_removed),
        cmocka_unit_test(pieces_that_do_not_follow),
        cmocka_unit_test(no_space),
        cmocka_unit_test(all_spools_have_a_cap),
        cmocka_unit_test(a_full_database_takes_the_spools),
        cmocka_unit_test(a_reserve_is_left_to_the_database),
        cmocka_unit_test(without_space_the_spools_go),
        cmocka_unit_test(what_can_not_be_opened_stays),
        cmocka_unit_test(always_durable_has_no_spools),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
