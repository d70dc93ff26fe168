#include "base/id.h"
#include "test.h"

static const char *const examples[ID_KINDS] = {
    [ID_SANDBOX] = "sb_abcdefghijklmnopqrstuvwxyz",    [ID_EXEC] = "ex_234567abcdefghijklmnopqrst",
    [ID_SNAPSHOT] = "snap_aaaaaaaaaaaaaaaaaaaaaaaaaa", [ID_TEMPLATE] = "tmpl_77777777777777777777777777",
    [ID_KEY] = "key_zzzzzzzzzzzzzzzzzzzzzzzzzz",
};

TEST(made_ids_are_ids)
{
    for (int kind = 0; kind < ID_KINDS; kind++) {
        struct id id;
        assert_int_equal(id_make((enum id_kind)kind, &id), 0);
        for (int other = 0; other < ID_KINDS; other++)
            assert_row(id.text, id_is((enum id_kind)other, id.text) == (kind == other));
    }
}

TEST(no_two_are_alike)
{
    enum { MANY = 2000 };
    static struct id ids[MANY];

    for (size_t i = 0; i < MANY; i++) {
        assert_int_equal(id_make(ID_EXEC, &ids[i]), 0);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(ids[i].text, ids[j].text);
    }
}

/* Each character of the alphabet turns up about equally often. */
TEST(all_characters_are_used)
{
    enum { ROUNDS = 400, LENGTH = 256 };
    size_t seen[256] = {0};
    char text[LENGTH + 1];

    for (size_t i = 0; i < ROUNDS; i++) {
        assert_int_equal(id_random_text(text, LENGTH), 0);
        assert_int_equal(strlen(text), LENGTH);
        for (size_t j = 0; j < LENGTH; j++)
            seen[(uint8_t)text[j]]++;
    }
    for (const char *at = "abcdefghijklmnopqrstuvwxyz234567"; *at != '\0'; at++)
        assert_in_range(seen[(uint8_t)*at], ROUNDS * LENGTH / 40, ROUNDS * LENGTH / 26);
    assert_int_equal(id_random_text(text, LENGTH + 1), -EINVAL);
}

TEST(what_is_no_id)
{
    static const char *const wrong[] = {
        "",
        "sb_",
        "sb_abcdefghijklmnopqrstuvwxy",
        "sb_abcdefghijklmnopqrstuvwxyza",
        "sb_ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        "sb_abcdefghijklmnopqrstuvwxy1",
        "sb_abcdefghijklmnopqrstuvwxy8",
        "sb_../../../../../etc/passwd_",
        "sb_abcdefghijklmnopqrstuvwxy\xc3",
        " sb_abcdefghijklmnopqrstuvwxyz",
        "sb_abcdefghijklmnopqrstuvwxyz ",
        "SB_abcdefghijklmnopqrstuvwxyz",
    };

    for (size_t i = 0; i < COUNT(wrong); i++)
        assert_row(wrong[i], !id_is(ID_SANDBOX, wrong[i]));
    assert_false(id_is(ID_SANDBOX, NULL));
    for (int kind = 0; kind < ID_KINDS; kind++)
        assert_row(examples[kind], id_is((enum id_kind)kind, examples[kind]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(made_ids_are_ids),
        cmocka_unit_test(no_two_are_alike),
        cmocka_unit_test(all_characters_are_used),
        cmocka_unit_test(what_is_no_id),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
