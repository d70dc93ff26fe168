#include "attack/report.h"
#include "test.h"

static const struct attack one = {.name = "one", .tries = "to get out", .group = ATTACK_KERNEL};
static const struct attack second = {.name = "second", .tries = "more", .group = ATTACK_RESOURCES};
static const struct attack third = {.name = "third", .tries = "most", .group = ATTACK_RESOURCES};
static const struct attack *const some[] = {&one, &second, &third};

static const struct ruling good[] = {
    {VERDICT_REFUSED, 1500000, 3, ""},
    {VERDICT_REFUSED, 2000000000, 2, "not on this kernel: x (y)"},
    {VERDICT_ABSENT, 0, 1, "not on this kernel: z"},
};

static struct report report_of(const struct ruling *rulings)
{
    return (struct report){
        .attacks = some, .rulings = rulings, .count = COUNT(some), .version = "1.2", .kernel = "6.1\"x"};
}

static void assert_text(struct buf *text, const char *expected)
{
    assert_int_equal(buf_append(text, "", 1), 0);
    assert_string_equal((const char *)text->data, expected);
    buf_release(text);
}

static void assert_table(const struct ruling *rulings, bool colour, const char *expected)
{
    struct buf text = buf_init(1 << 16);
    struct report report = report_of(rulings);
    const struct attack *last = NULL;

    for (size_t i = 0; i < COUNT(some); i++) {
        if (rulings[i].verdict == VERDICT_NONE)
            continue;
        assert_int_equal(report_row(&report, i, last, colour, &text), 0);
        last = some[i];
    }
    assert_int_equal(report_summary(&report, colour, &text), 0);
    assert_text(&text, expected);
}

TEST(test_table)
{
    assert_table(good, false,
                 "Kernel surface\n"
                 "  one     to get out  refused          2 ms\n"
                 "\nResources\n"
                 "  second  more        refused       2000 ms\n"
                 "          not on this kernel: x (y)\n"
                 "  third   most        not here         0 ms\n"
                 "          not on this kernel: z\n"
                 "\n2 refused, 0 got through, 1 not on this machine (6 attempts)\n");
    struct report report = report_of(good);
    assert_true(report_is_good(&report));
}

TEST(test_through)
{
    static const struct ruling bad[] = {{VERDICT_REFUSED, 0, 1, ""},
                                        {VERDICT_THROUGH, 0, 1, "as root: it worked"},
                                        {VERDICT_UNTRIED, 0, 0, "no sandbox"}};

    assert_table(bad, true,
                 "Kernel surface\n"
                 "  one     to get out  \033[32mrefused    \033[0m      0 ms\n"
                 "\nResources\n"
                 "  second  more        \033[31mGOT THROUGH\033[0m      0 ms\n"
                 "          as root: it worked\n"
                 "  third   most        \033[31mnot tried  \033[0m      0 ms\n"
                 "          no sandbox\n"
                 "\n\033[31m1 refused, 1 got through, 1 could not be tried (2 attempts)\033[0m\n");
    struct report report = report_of(bad);
    assert_false(report_is_good(&report));
}

/* What could not be tried is not good either. */
TEST(test_untried)
{
    static const struct ruling bad[] = {
        {VERDICT_REFUSED, 0, 1, ""}, {VERDICT_UNTRIED, 0, 0, ""}, {VERDICT_REFUSED, 0, 1, ""}};
    struct report report = report_of(bad);

    assert_false(report_is_good(&report));
}

TEST(test_json)
{
    static const struct ruling one_asked[] = {
        {VERDICT_NONE, 0, 0, ""}, {VERDICT_THROUGH, 7000, 2, "it \"worked\"\033"}, {VERDICT_NONE, 0, 0, ""}};
    struct buf json = buf_init(1 << 16);
    struct report report = report_of(one_asked);

    assert_int_equal(report_json(&report, &json), 0);
    assert_text(&json,
                "{\"version\":\"1.2\",\"kernel\":\"6.1\\\"x\",\"attacks\":["
                "{\"name\":\"second\",\"group\":\"resources\",\"tries\":\"more\",\"verdict\":\"through\","
                "\"detail\":\"it \\\"worked\\\"\\u001b\",\"attempts\":2,\"took_us\":7}],"
                "\"refused\":0,\"through\":1,\"absent\":0,\"untried\":0,\"attempts\":2,\"all_refused\":false}\n");
}

TEST(test_list)
{
    struct buf text = buf_init(1 << 16);
    struct report report = report_of(NULL);

    assert_int_equal(report_list(&report, &text), 0);
    assert_text(&text, "Kernel surface\n  one     to get out\n\nResources\n  second  more\n  third   most\n");
}

TEST(test_full)
{
    struct buf text = buf_init(10);
    struct report report = report_of(good);

    assert_int_equal(report_json(&report, &text), -ENOBUFS);
    buf_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table), cmocka_unit_test(test_through), cmocka_unit_test(test_untried),
        cmocka_unit_test(test_json),  cmocka_unit_test(test_list),    cmocka_unit_test(test_full),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
