#include "gateway/seal.h"

#include "test.h"

#include <stdlib.h>

static const struct seal one = {.key = {1, 2, 3}};
static const struct seal other = {.key = {1, 2, 4}};

TEST(test_what_is_sealed_can_be_opened)
{
    static const char text[] = "[\"TOKEN=canary\"]";
    size_t length = 0;
    char *sealed = seal_close(&one, "sb_a", text, strlen(text));

    assert_non_null(sealed);
    assert_null(strstr(sealed, "canary"));
    char *opened = seal_open(&one, "sb_a", sealed, &length);
    assert_non_null(opened);
    assert_int_equal(length, strlen(text));
    assert_string_equal(opened, text);
    char *again = seal_close(&one, "sb_a", text, strlen(text));
    assert_string_not_equal(again, sealed);
    free(again);
    free(opened);
    free(sealed);
}

TEST(test_nobody_else_opens_it)
{
    size_t length = 0;
    char *sealed = seal_close(&one, "sb_a", "", 0);

    assert_non_null(sealed);
    assert_null(seal_open(&other, "sb_a", sealed, &length));
    assert_null(seal_open(&one, "sb_b", sealed, &length));
    for (size_t i = 0; sealed[i] != '=' && sealed[i] != '\0'; i++) {
        char was = sealed[i];
        sealed[i] = was == 'A' ? 'B' : 'A';
        assert_null(seal_open(&one, "sb_a", sealed, &length));
        sealed[i] = '\0';
        assert_null(seal_open(&one, "sb_a", sealed, &length));
        sealed[i] = was;
    }
    assert_null(seal_open(&one, "sb_a", "not base64!", &length));
    char *opened = seal_open(&one, "sb_a", sealed, &length);
    assert_string_equal(opened, "");
    free(opened);
    free(sealed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_what_is_sealed_can_be_opened),
                                       cmocka_unit_test(test_nobody_else_opens_it)};

    return cmocka_run_group_tests_name("gateway/seal", tests, NULL, NULL);
}
