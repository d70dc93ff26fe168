#include "base/arena.h"
#include "test.h"

#include <stdalign.h>

TEST(memory_is_zeroed_aligned_and_apart)
{
    struct arena arena = arena_init(1 << 20);
    unsigned char *pieces[100];

    for (size_t i = 0; i < COUNT(pieces); i++) {
        pieces[i] = arena_alloc(&arena, i * 50 + 1);
        assert_non_null(pieces[i]);
        assert_int_equal((uintptr_t)pieces[i] % alignof(max_align_t), 0);
        for (size_t j = 0; j < i * 50 + 1; j++)
            assert_int_equal(pieces[i][j], 0);
        memset(pieces[i], (int)i + 1, i * 50 + 1);
    }
    for (size_t i = 0; i < COUNT(pieces); i++)
        assert_int_equal(pieces[i][i * 50], i + 1);
    arena_release(&arena);
}

TEST(full_is_full)
{
    struct arena arena = arena_init(1000);

    assert_non_null(arena_alloc(&arena, 900));
    assert_false(arena.full);
    assert_null(arena_alloc(&arena, 200));
    assert_true(arena.full);
    assert_null(arena_alloc(&arena, 1)); /* it would fit, but something before it is missing */
    arena_release(&arena);
}

TEST(a_size_that_overflows_is_too_much)
{
    struct arena arena = arena_init(1000);

    assert_null(arena_alloc(&arena, SIZE_MAX));
    assert_true(arena.full);
    arena_release(&arena);
}

TEST(the_cap_holds)
{
    struct arena arena = arena_init(10000);
    size_t total = 0;

    while (arena_alloc(&arena, 100) != NULL)
        total += 100;
    assert_true(total > 8000 && total <= 10000 && arena.used <= 10000);
    arena_release(&arena);
    /* One large piece, right up to it. */
    assert_non_null(arena_alloc(&arena, 9900));
    assert_null(arena_alloc(&arena, 200));
    arena_release(&arena);
    struct arena none = arena_init(0);
    assert_null(arena_alloc(&none, 0));
}

TEST(printed)
{
    struct arena arena = arena_init(10000);

    assert_string_equal(arena_copy(&arena, "abcdef", 3), "abc");
    assert_string_equal(arena_printf(&arena, "%s-%d", "a", 7), "a-7");
    assert_null(arena_printf(&arena, "%20000d", 7));
    arena_release(&arena);
}

TEST(copies)
{
    struct arena arena = arena_init(1000);
    char text[] = "text";

    const char *copy = arena_copy_text(&arena, text);
    text[0] = 'x';
    assert_string_equal(copy, "text");
    assert_null(arena_copy_text(&arena, NULL));
    assert_null(arena_copy(&arena, NULL, 5));
    assert_false(arena.full);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_zeroed_aligned_and_apart),
        cmocka_unit_test(full_is_full),
        cmocka_unit_test(a_size_that_overflows_is_too_much),
        cmocka_unit_test(the_cap_holds),
        cmocka_unit_test(printed),
        cmocka_unit_test(copies),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
