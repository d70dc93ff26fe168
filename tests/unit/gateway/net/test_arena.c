#include "gateway/net/arena.h"
#include "test.h"

TEST(memory_is_aligned_and_apart)
{
    struct arena arena = arena_init(100000);
    char *before = NULL;

    for (size_t size = 0; size < 200; size++) {
        char *memory = arena_alloc(&arena, size);
        assert_non_null(memory);
        assert_int_equal((uintptr_t)memory % _Alignof(max_align_t), 0);
        memset(memory, (int)size, size);
        if (before != NULL && size > 1)
            assert_int_equal(before[0], (char)(size - 1));
        before = memory;
    }
    assert_true(arena.used <= 100000);
    arena_release(&arena);
    assert_int_equal(arena.used, 0);
}

TEST(the_cap_holds)
{
    struct arena arena = arena_init(10000);
    size_t total = 0;

    while (arena_alloc(&arena, 100) != NULL)
        total += 100;
    assert_true(total > 8000 && total <= 10000 && arena.used <= 10000);
    assert_null(arena_alloc(&arena, 10001));
    assert_null(arena_alloc(&arena, SIZE_MAX));
    assert_null(arena_copy(&arena, "x", SIZE_MAX));
    arena_release(&arena);
    /* One large piece, right up to it. */
    assert_non_null(arena_alloc(&arena, 9900));
    assert_null(arena_alloc(&arena, 200));
    arena_release(&arena);
    struct arena none = arena_init(0);
    assert_null(arena_alloc(&none, 1));
    assert_null(arena_alloc(&none, 0));
}

TEST(strings)
{
    struct arena arena = arena_init(10000);

    assert_string_equal(arena_copy(&arena, "abcdef", 3), "abc");
    assert_string_equal(arena_copy(&arena, NULL, 0), "");
    assert_string_equal(arena_printf(&arena, "%s-%d", "a", 7), "a-7");
    assert_null(arena_printf(&arena, "%20000d", 7));
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_aligned_and_apart),
        cmocka_unit_test(the_cap_holds),
        cmocka_unit_test(strings),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
