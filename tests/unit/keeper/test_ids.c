#include "keeper/ids.h"
#include "test.h"

#include <sys/wait.h>

enum { SLOTS = 8, FIRST = 100 * IDS_PER_SANDBOX, LAST = (100 + SLOTS) * IDS_PER_SANDBOX - 1 };

static struct ids *make_ids(int folder)
{
    struct ids *ids = NULL;
    struct error err;

    assert_int_equal(ids_new(folder, FIRST, LAST, &ids, &err), 0);
    assert_non_null(ids);
    return ids;
}

/* Claims a range that is not in `seen` yet and notes it there. */
static uint32_t claim_new(struct ids *ids, bool seen[SLOTS])
{
    uint32_t first = 0;
    struct error err;

    assert_int_equal(ids_claim(ids, &first, &err), 0);
    assert_int_equal(first % IDS_PER_SANDBOX, 0);
    assert_in_range(first, FIRST, LAST);
    size_t slot = (first - FIRST) / IDS_PER_SANDBOX;
    assert_false(seen[slot]);
    seen[slot] = true;
    return first;
}

static void assert_exhausted(struct ids *ids)
{
    uint32_t first;
    struct error err;

    assert_int_equal(ids_claim(ids, &first, &err), -EAGAIN);
    assert_int_equal(err.code, ERROR_LIMIT);
}

TEST(test_own_ranges)
{
    int folder = test_folder();
    struct ids *ids = make_ids(folder);
    bool seen[SLOTS] = {false};
    uint32_t last = 0;

    for (size_t i = 0; i < SLOTS; i++) {
        assert_int_equal(ids_available(ids), SLOTS - i);
        last = claim_new(ids, seen);
    }
    assert_exhausted(ids);
    assert_int_equal(ids_available(ids), 0);
    ids_release(ids, last);
    assert_int_equal(ids_available(ids), 1);
    seen[(last - FIRST) / IDS_PER_SANDBOX] = false;
    assert_int_equal(claim_new(ids, seen), last);
    assert_exhausted(ids);
    ids_free(ids);
    (void)close(folder);
}

/* Two keepers of one machine never have the same range, and get what the other gives back. */
TEST(test_two_keepers)
{
    int folder = test_folder();
    struct ids *a = make_ids(folder);
    struct ids *b = make_ids(folder);
    bool seen[SLOTS] = {false};
    uint32_t first = 0;

    for (size_t i = 0; i < SLOTS; i++)
        first = claim_new(i % 2 == 0 ? a : b, seen);
    assert_exhausted(a);
    assert_exhausted(b);
    ids_release(b, first);
    seen[(first - FIRST) / IDS_PER_SANDBOX] = false;
    assert_int_equal(claim_new(a, seen), first);
    ids_free(a);
    memset(seen, 0, sizeof seen);
    for (size_t i = 0; i < SLOTS - (SLOTS / 2 - 1); i++)
        (void)claim_new(b, seen);
    assert_exhausted(b);
    ids_free(b);
    (void)close(folder);
}

/* A claim ends with its keeper however that ends. */
TEST(test_killed_keeper)
{
    int folder = test_folder();
    struct ids *ids = make_ids(folder);
    int ends[2];
    char byte;

    assert_return_code(pipe2(ends, O_CLOEXEC), errno);
    pid_t pid = fork();
    if (pid == 0) {
        struct ids *other = make_ids(folder);
        bool seen[SLOTS] = {false};
        for (size_t i = 0; i < SLOTS; i++)
            (void)claim_new(other, seen);
        _exit(write(ends[1], "x", 1) == 1 && pause() == 0 ? 0 : 1);
    }
    assert_int_equal(read(ends[0], &byte, 1), 1);
    assert_exhausted(ids);
    assert_return_code(kill(pid, SIGKILL), errno);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    bool seen[SLOTS] = {false};
    for (size_t i = 0; i < SLOTS; i++)
        (void)claim_new(ids, seen);
    ids_free(ids);
    (void)close(folder);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

/* A claim is passed on with the descriptor, and ends with the last copy of it. */
TEST(test_passed_on)
{
    int folder = test_folder();
    struct ids *ids = make_ids(folder);
    struct ids *other = make_ids(folder);
    bool seen[SLOTS] = {false};

    for (size_t i = 0; i < SLOTS; i++)
        (void)claim_new(ids, seen);
    int copy = dup(ids_claim_fd(ids));
    assert_true(copy >= 0);
    ids_free(ids);
    assert_exhausted(other);
    (void)close(copy);
    memset(seen, 0, sizeof seen);
    (void)claim_new(other, seen);
    ids_free(other);
    (void)close(folder);
}

/* What other tools were given is never claimed, be it a whole range or a single id of it. Slot 100 is 6553600. */
TEST(test_other_tools)
{
    static const struct {
        const char *subuid;
        const char *subgid;
        bool excluded[SLOTS];
    } rows[] = {
        {"", "", {false}},
        {"a:6553600:65536\n", "", {true}},
        {"", "a:6553600:65536\n", {true}},
        {"a:6553599:1\n", "", {false}},
        {"a:6553599:2\n", "", {true}},
        {"a:6619135:1\n", "", {true}},
        {"a:6619135:2\n", "", {true, true}},
        {"a:6619136:0\n", "", {false}},
        {"a:6619136:65536\nb:6750208:65537\n", "c:7012352:1", {false, true, false, true, true, false, false, true}},
        {"nonsense\n\n:\na:b\n", "a:6553600", {false}},
        {"a:0:4294967295\n", "", {true, true, true, true, true, true, true, true}},
    };
    int folder = test_folder();
    int etc = open("/etc", O_PATH | O_CLOEXEC);

    assert_true(etc >= 0);
    for (size_t i = 0; i < COUNT(rows); i++) {
        test_write(etc, "subuid", rows[i].subuid);
        test_write(etc, "subgid", rows[i].subgid);
        struct ids *ids = make_ids(folder);
        bool seen[SLOTS];
        memcpy(seen, rows[i].excluded, sizeof seen);
        for (size_t slot = 0; slot < SLOTS; slot++) {
            if (!rows[i].excluded[slot])
                (void)claim_new(ids, seen);
        }
        assert_exhausted(ids);
        ids_free(ids);
    }
    (void)close(etc);
    (void)close(folder);
}

static int hide_etc(void **state)
{
    (void)state;
    test_hide("/etc");
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_ranges), cmocka_unit_test(test_two_keepers), cmocka_unit_test(test_killed_keeper),
        cmocka_unit_test(test_passed_on),  cmocka_unit_test(test_other_tools),
    };
    return cmocka_run_group_tests_name("keeper/ids", tests, hide_etc, NULL);
}
