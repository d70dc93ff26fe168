#include "attack/tries.h"
#include "test.h"

static struct tries tries;
static struct tries control;

static int parse(const char *text, struct tries *ret_tries)
{
    return tries_parse(text, strlen(text), ret_tries);
}

TEST(test_lines)
{
    assert_int_equal(
        parse("refused\ta map\tOperation not permitted\nthrough\tb\tit worked\nabsent\tc\tnone\ndone\t\t\n", &tries),
        0);
    assert_int_equal(tries.count, 3);
    assert_true(tries.done);
    assert_int_equal(tries.list[0].verdict, TRY_REFUSED);
    assert_string_equal(tries.list[0].what, "a map");
    assert_string_equal(tries.list[0].detail, "Operation not permitted");
    assert_string_equal(tries_first(&tries, TRY_THROUGH)->what, "b");
    assert_string_equal(tries_first(&tries, TRY_ABSENT)->what, "c");
}

TEST(test_end_is_missing)
{
    assert_int_equal(parse("", &tries), 0);
    assert_false(tries.done);
    /* Cut in the middle of a line. */
    assert_int_equal(parse("refused\ta\tx\nthrough\tb", &tries), 0);
    assert_int_equal(tries.count, 1);
    assert_false(tries.done);
}

TEST(test_garbage)
{
    assert_int_equal(parse("refused by nobody\n", &tries), -EBADMSG);
    assert_int_equal(parse("\n", &tries), -EBADMSG);
    assert_int_equal(parse("refused\t\t\n", &tries), -EBADMSG);
}

TEST(test_too_many)
{
    char text[(TRIES_MAX + 1) * 16] = "";

    for (size_t i = 0; i < TRIES_MAX + 1; i++)
        (void)strcat(text, "refused\tx\ty\n");
    assert_int_equal(parse(text, &tries), -ENOBUFS);
}

TEST(test_long_fields)
{
    char text[1000];

    (void)memset(text, 'x', sizeof text);
    memcpy(text, "refused\t", 8);
    text[500] = '\t';
    text[999] = '\n';
    assert_int_equal(tries_parse(text, sizeof text, &tries), 0);
    assert_int_equal(strlen(tries.list[0].what), TRY_WHAT_SIZE - 1);
    assert_int_equal(strlen(tries.list[0].detail), TRY_DETAIL_SIZE - 1);
}

TEST(test_control)
{
    assert_int_equal(parse("refused\ta\tinside\nrefused\tb\tinside\nthrough\tc\tinside\nrefused\td\tinside\n", &tries),
                     0);
    assert_int_equal(parse("through\ta\toutside\nrefused\tb\toutside\nrefused\tc\toutside\n", &control), 0);
    tries_compare(&tries, &control);
    /* Works outside: the refusal is the sandbox's. */
    assert_int_equal(tries.list[0].verdict, TRY_REFUSED);
    /* Refused outside too: says nothing. */
    assert_int_equal(tries.list[1].verdict, TRY_ABSENT);
    assert_string_equal(tries.list[1].detail, "outside");
    /* What gets through stays so, whatever happens outside. */
    assert_int_equal(tries.list[2].verdict, TRY_THROUGH);
    assert_int_equal(tries.list[3].verdict, TRY_REFUSED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),    cmocka_unit_test(test_end_is_missing), cmocka_unit_test(test_garbage),
        cmocka_unit_test(test_too_many), cmocka_unit_test(test_long_fields),    cmocka_unit_test(test_control),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
