#include "base/nearest.h"
#include "test.h"

static const char *nearest_of(const char *word)
{
    static const char *const words[] = {"--memory", "--json", "--timeout", "--user"};
    struct nearest nearest = nearest_init(word);

    for (size_t i = 0; i < COUNT(words); i++)
        nearest_offer(&nearest, words[i]);
    return nearest.best;
}

TEST(test_near)
{
    static const char *const rows[][2] = {
        {"--memroy", "--memory"},  {"--jsn", "--json"}, {"--json", "--json"},
        {"--timout", "--timeout"}, {"-user", "--user"},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        assert_string_equal(nearest_of(rows[i][0]), rows[i][1]);
}

TEST(test_far)
{
    char huge[400] = "--";

    memset(huge + 2, 'x', sizeof huge - 3);
    assert_null(nearest_of("--frobnicate"));
    assert_null(nearest_of(huge));
}

/* Of two that are as near the first. */
TEST(test_first)
{
    struct nearest nearest = nearest_init("--aa");

    nearest_offer(&nearest, "--ab");
    nearest_offer(&nearest, "--ac");
    assert_string_equal(nearest.best, "--ab");
    nearest_offer(&nearest, "--aa");
    assert_string_equal(nearest.best, "--aa");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_near), cmocka_unit_test(test_far),
                                       cmocka_unit_test(test_first)};
    return cmocka_run_group_tests_name("base/nearest", tests, NULL, NULL);
}
