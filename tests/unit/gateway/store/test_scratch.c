#include "gateway/store/scratch.h"
#include "test.h"

#include <stdalign.h>

TEST(memory_is_zeroed_aligned_and_apart)
{
    struct scratch scratch = scratch_init(1 << 20);
    unsigned char *pieces[100];

    for (size_t i = 0; i < COUNT(pieces); i++) {
        pieces[i] = scratch_take(&scratch, i * 50 + 1);
        assert_non_null(pieces[i]);
        assert_int_equal((uintptr_t)pieces[i] % alignof(max_align_t), 0);
        for (size_t j = 0; j < i * 50 + 1; j++)
            assert_int_equal(pieces[i][j], 0);
        memset(pieces[i], (int)i + 1, i * 50 + 1);
    }
    for (size_t i = 0; i < COUNT(pieces); i++)
        assert_int_equal(pieces[i][i * 50], i + 1);
    scratch_release(&scratch);
}

TEST(full_is_full)
{
    struct scratch scratch = scratch_init(1000);

    assert_non_null(scratch_take(&scratch, 900));
    assert_false(scratch.full);
    assert_null(scratch_take(&scratch, 200));
    assert_true(scratch.full);
    assert_null(scratch_take(&scratch, 1)); /* it would fit, but something before it is missing */
    scratch_release(&scratch);
}

TEST(a_size_that_overflows_is_too_much)
{
    struct scratch scratch = scratch_init(1000);

    assert_null(scratch_take(&scratch, SIZE_MAX));
    assert_true(scratch.full);
    scratch_release(&scratch);
}

TEST(copies)
{
    struct scratch scratch = scratch_init(1000);
    char text[] = "text";

    const char *copy = scratch_copy_text(&scratch, text);
    text[0] = 'x';
    assert_string_equal(copy, "text");
    assert_null(scratch_copy_text(&scratch, NULL));
    assert_null(scratch_copy(&scratch, NULL, 5));
    assert_false(scratch.full);
    scratch_release(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_zeroed_aligned_and_apart),
        cmocka_unit_test(full_is_full),
        cmocka_unit_test(a_size_that_overflows_is_too_much),
        cmocka_unit_test(copies),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
