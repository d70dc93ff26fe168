#include "gateway/engine/ring.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

static void append(struct ring *ring, size_t stream, const char *text, uint64_t pinned)
{
    assert_int_equal(ring_append(ring, stream, (const uint8_t *)text, strlen(text), pinned), 0);
}

/* Everything from `seq` on, as "stream:text" pieces. */
static const char *read_all(const struct ring *ring, uint64_t seq)
{
    static char text[4096];
    struct ring_piece piece;
    size_t at = 0;

    text[0] = '\0';
    while (ring_read(ring, seq, UINT64_MAX, &piece) > 0) {
        at += (size_t)snprintf(text + at, sizeof text - at, "%zu:%.*s ", piece.stream, (int)piece.length,
                               (const char *)piece.data);
        seq = piece.seq + piece.length;
    }
    return text;
}

TEST(test_order_and_cursors)
{
    struct ring ring;
    struct ring_piece piece;

    ring_init(&ring, 1000);
    assert_int_equal(ring_read(&ring, 0, UINT64_MAX, &piece), 0);
    append(&ring, 0, "one", 0);
    append(&ring, 0, "two", 0);
    append(&ring, 1, "err", 0);
    append(&ring, 0, "three", 0);
    assert_string_equal(read_all(&ring, 0), "0:onetwo 1:err 0:three ");
    assert_string_equal(read_all(&ring, 4), "0:wo 1:err 0:three ");
    assert_string_equal(read_all(&ring, 6), "1:err 0:three ");
    assert_string_equal(read_all(&ring, 13), "0:e ");
    assert_string_equal(read_all(&ring, 14), "");
    assert_int_equal(ring_read(&ring, 7, 8, &piece), 1);
    assert_int_equal(piece.length, 1);
    assert_int_equal(piece.offset, 1);
    assert_int_equal(ring_read(&ring, 10, 8, &piece), 0);
    assert_int_equal(ring.offsets[0], 11);
    assert_int_equal(ring.offsets[1], 3);
    ring_release(&ring);
}

TEST(test_settled_bytes_do_not_move)
{
    struct ring ring;
    struct ring_piece before;
    struct ring_piece after;

    ring_init(&ring, 100000);
    append(&ring, 0, "first", 0);
    assert_int_equal(ring_settle(&ring), 0);
    assert_int_equal(ring_read(&ring, 0, UINT64_MAX, &before), 1);
    for (int i = 0; i < 9000; i++)
        append(&ring, 0, "more bytes", 0);
    assert_int_equal(ring_read(&ring, 0, UINT64_MAX, &after), 1);
    assert_ptr_equal(before.data, after.data);
    assert_memory_equal(after.data, "firstmore", 9);
    assert_int_equal(ring_settle(&ring), 0);
    ring_release(&ring);
}

TEST(test_newest_are_kept)
{
    struct ring ring;

    ring_init(&ring, 8);
    append(&ring, 0, "abcd", UINT64_MAX);
    append(&ring, 1, "efgh", UINT64_MAX);
    append(&ring, 0, "ij", UINT64_MAX);
    assert_int_equal(ring.first, 2);
    assert_string_equal(read_all(&ring, 0), "0:cd 1:efgh 0:ij ");
    append(&ring, 0, "klmnop", UINT64_MAX);
    assert_string_equal(read_all(&ring, 0), "0:ijklmnop ");
    assert_int_equal(ring.run_count, 1);
    assert_int_equal(ring_append(&ring, 0, (const uint8_t *)"123456789", 9, UINT64_MAX), -ENOBUFS);
    ring_release(&ring);
}

/* What is not recorded yet does not make room. */
TEST(test_pinned)
{
    struct ring ring;

    ring_init(&ring, 8);
    append(&ring, 0, "abcdefgh", 0);
    assert_int_equal(ring_append(&ring, 0, (const uint8_t *)"i", 1, 0), -ENOBUFS);
    assert_string_equal(read_all(&ring, 0), "0:abcdefgh ");
    append(&ring, 0, "i", 1);
    assert_int_equal(ring_append(&ring, 0, (const uint8_t *)"jk", 2, 2), -ENOBUFS);
    assert_int_equal(ring.first, 1);
    ring_release(&ring);
}

TEST(test_short_runs_are_bounded)
{
    struct ring ring;

    ring_init(&ring, 1 << 20);
    for (size_t i = 0; i < 3 * RING_RUNS; i++)
        assert_int_equal(ring_append(&ring, i & 1, (const uint8_t *)"x", 1, UINT64_MAX), 0);
    assert_int_equal(ring.run_count, RING_RUNS);
    assert_int_equal(ring.next - ring.first, RING_RUNS);
    ring_release(&ring);
    ring_init(&ring, 1 << 20);
    for (size_t i = 0; i < 3 * RING_RUNS; i++)
        assert_int_equal(ring_append(&ring, i & 1, (const uint8_t *)"x", 1, 0), 0);
    assert_int_equal(ring.run_count, 3 * RING_RUNS);
    assert_int_equal(ring.first, 0);
    ring_release(&ring);
}

TEST(test_goes_on)
{
    const uint64_t offsets[RING_STREAMS] = {70, 30};
    struct ring ring;
    struct ring_piece piece;

    ring_init(&ring, 100);
    ring_start_at(&ring, 100, offsets);
    append(&ring, 1, "more", 100);
    assert_int_equal(ring_read(&ring, 0, UINT64_MAX, &piece), 1);
    assert_int_equal(piece.seq, 100);
    assert_int_equal(piece.offset, 30);
    ring_release(&ring);
}

/* Against a plain array of all that was ever appended. */
TEST(test_at_random)
{
    enum { CAP = 1000, TOTAL = 200000, LONGEST = 300 };
    static uint8_t all[TOTAL + LONGEST];
    static uint8_t streams[TOTAL + LONGEST];
    struct ring ring;
    struct ring_piece piece;
    uint64_t next = 0;
    unsigned seed = 7;

    ring_init(&ring, CAP);
    while (next < TOTAL) {
        size_t length = 1 + (size_t)rand_r(&seed) % LONGEST;
        size_t stream = (size_t)rand_r(&seed) & 1;
        for (size_t i = 0; i < length; i++) {
            all[next + i] = (uint8_t)rand_r(&seed);
            streams[next + i] = (uint8_t)stream;
        }
        assert_int_equal(ring_append(&ring, stream, all + next, length, UINT64_MAX), 0);
        next += length;
        assert_int_equal(ring.next, next);
        assert_int_equal(ring.next - ring.first, next < CAP ? next : CAP);
        uint64_t at = ring.first + (uint64_t)rand_r(&seed) % (ring.next - ring.first);
        while (ring_read(&ring, at, UINT64_MAX, &piece) > 0) {
            assert_int_equal(piece.seq, at);
            assert_memory_equal(piece.data, all + at, piece.length);
            for (size_t i = 0; i < piece.length; i++)
                assert_int_equal(streams[at + i], piece.stream);
            at += piece.length;
        }
        assert_int_equal(at, next);
    }
    ring_release(&ring);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order_and_cursors),
        cmocka_unit_test(test_settled_bytes_do_not_move),
        cmocka_unit_test(test_newest_are_kept),
        cmocka_unit_test(test_pinned),
        cmocka_unit_test(test_short_runs_are_bounded),
        cmocka_unit_test(test_goes_on),
        cmocka_unit_test(test_at_random),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
