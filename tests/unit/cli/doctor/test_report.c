#include "cli/doctor/report.h"
#include "test.h"

static const struct check some[] = {
    {.name = "one", .group = CHECK_NEEDED, .meaning = "No one.", .mend = "make one"},
    {.name = "sandbox", .group = CHECK_NEEDED, .meaning = "None.", .mend = "see above"},
    {.name = "longer", .group = CHECK_OPTION, .meaning = "No longer.", .mend = "make it longer"},
    {.name = "x", .group = CHECK_AROUND},
};

static const struct finding all_yes[] = {
    {FINDING_YES, "found one", ""},
    {FINDING_YES, "made", ""},
    {FINDING_YES, "6", ""},
    {FINDING_YES, "y", ""},
};

static struct report report_of(const struct finding *findings)
{
    return (struct report){
        .checks = some, .findings = findings, .count = COUNT(some), .version = "1.2", .kernel = "6.1\"x"};
}

static void assert_text(const struct finding *findings, bool colour, const char *expected)
{
    struct buf text = buf_init(1 << 16);
    struct report report = report_of(findings);

    assert_int_equal(report_text(&report, colour, &text), 0);
    assert_int_equal(buf_append(&text, "", 1), 0);
    assert_string_equal((const char *)text.data, expected);
    buf_release(&text);
}

static void assert_json(const struct finding *findings, const char *expected)
{
    struct buf json = buf_init(1 << 16);
    struct report report = report_of(findings);

    assert_int_equal(report_json(&report, &json), 0);
    assert_int_equal(buf_append(&json, "", 1), 0);
    assert_string_equal((const char *)json.data, expected);
    buf_release(&json);
}

TEST(test_all_yes)
{
    assert_text(all_yes, false,
                "Needed for every sandbox\n"
                "  yes  one      found one\n"
                "  yes  sandbox  made\n"
                "\nNeeded by some options and by the daemon\n"
                "  yes  longer   6\n"
                "\nLimits and surroundings\n"
                "  yes  x        y\n"
                "\nA sandbox can be made here.\n");
    struct report report = report_of(all_yes);
    assert_true(report_can_make_sandbox(&report));
}

TEST(test_no)
{
    static const struct finding findings[] = {
        {FINDING_NO, "nothing", ""},
        {FINDING_NO, "failed", "another way"},
        {FINDING_NO, "5", ""},
        {FINDING_NO, "n", ""}, /* a check that has nothing to add */
    };

    assert_text(findings, false,
                "Needed for every sandbox\n"
                "  no   one      nothing\n"
                "         means  No one.\n"
                "         mend   make one\n"
                "  no   sandbox  failed\n"
                "         means  None.\n"
                "         mend   another way\n"
                "\nNeeded by some options and by the daemon\n"
                "  no   longer   5\n"
                "         means  No longer.\n"
                "         mend   make it longer\n"
                "\nLimits and surroundings\n"
                "  no   x        n\n"
                "\nNo sandbox can be made here: one\n");
}

/* Only what is needed decides; what was not tried is not a yes, and no reason either. */
TEST(test_verdicts)
{
    static const struct {
        enum finding_state states[COUNT(some)];
        bool can;
        const char *last;
    } rows[] = {
        {{FINDING_YES, FINDING_YES, FINDING_NO, FINDING_NO}, true, "\nA sandbox can be made here.\n"},
        {{FINDING_YES, FINDING_NO, FINDING_YES, FINDING_YES}, false, "\nNo sandbox can be made here: sandbox\n"},
        {{FINDING_NO, FINDING_UNKNOWN, FINDING_YES, FINDING_YES}, false, "\nNo sandbox can be made here: one\n"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct finding findings[COUNT(some)] = {0};
        struct report report = report_of(findings);
        struct buf text = buf_init(1 << 16);
        for (size_t j = 0; j < COUNT(some); j++)
            findings[j].state = rows[i].states[j];
        assert_row(rows[i].last, report_can_make_sandbox(&report) == rows[i].can);
        assert_int_equal(report_text(&report, false, &text), 0);
        size_t length = strlen(rows[i].last);
        assert_true(text.length > length);
        assert_memory_equal(text.data + text.length - length, rows[i].last, length);
        buf_release(&text);
    }
}

TEST(test_colour)
{
    static const struct finding findings[] = {
        {FINDING_NO, "nothing", ""}, {FINDING_UNKNOWN, "not tried", ""}, {FINDING_NO, "5", ""}, {FINDING_YES, "y", ""}};

    assert_text(findings, true,
                "Needed for every sandbox\n"
                "  \033[31mno \033[0m  one      nothing\n"
                "         means  No one.\n"
                "         mend   make one\n"
                "  ?    sandbox  not tried\n"
                "\nNeeded by some options and by the daemon\n"
                "  \033[33mno \033[0m  longer   5\n"
                "         means  No longer.\n"
                "         mend   make it longer\n"
                "\nLimits and surroundings\n"
                "  \033[32myes\033[0m  x        y\n"
                "\n\033[31mNo sandbox can be made here: one\033[0m\n");
}

/* A profile, a container's kind or a path is somebody else's choice of bytes. */
TEST(test_hostile_words)
{
    struct finding findings[COUNT(some)];

    memcpy(findings, all_yes, sizeof findings);
    findings[3] = (struct finding){FINDING_YES,
                                   "a\033[2Jb\nc\x7f\xc2\x9b"
                                   "d\xff\xc3\xa9",
                                   ""};
    assert_text(findings, false,
                "Needed for every sandbox\n"
                "  yes  one      found one\n"
                "  yes  sandbox  made\n"
                "\nNeeded by some options and by the daemon\n"
                "  yes  longer   6\n"
                "\nLimits and surroundings\n"
                "  yes  x        a?[2Jb?c??d?\xc3\xa9\n"
                "\nA sandbox can be made here.\n");
}

TEST(test_json)
{
    static const struct finding findings[] = {{FINDING_NO, "a \"b\"\n", ""},
                                              {FINDING_UNKNOWN, "not tried: needs one", ""},
                                              {FINDING_NO, "5", "do \\this"},
                                              {FINDING_YES, "y", "never told"}};

    assert_json(findings, "{\"version\":\"1.2\",\"kernel\":\"6.1\\\"x\",\"checks\":["
                          "{\"name\":\"one\",\"ok\":false,\"required\":true,\"found\":\"a \\\"b\\\"\\n\","
                          "\"meaning\":\"No one.\",\"mend\":\"make one\"},"
                          "{\"name\":\"sandbox\",\"ok\":null,\"required\":true,\"found\":\"not tried: needs one\","
                          "\"meaning\":null,\"mend\":null},"
                          "{\"name\":\"longer\",\"ok\":false,\"required\":false,\"found\":\"5\","
                          "\"meaning\":\"No longer.\",\"mend\":\"do \\\\this\"},"
                          "{\"name\":\"x\",\"ok\":true,\"required\":false,\"found\":\"y\","
                          "\"meaning\":null,\"mend\":null}"
                          "],\"can_make_sandbox\":false}\n");
}

TEST(test_no_room)
{
    struct report report = report_of(all_yes);

    for (size_t cap = 0; cap < 200; cap += 20) {
        struct buf text = buf_init(cap);
        assert_int_equal(report_text(&report, true, &text), -ENOBUFS);
        buf_release(&text);
        struct buf json = buf_init(cap);
        assert_int_equal(report_json(&report, &json), -ENOBUFS);
        buf_release(&json);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_yes),       cmocka_unit_test(test_no),
        cmocka_unit_test(test_verdicts),      cmocka_unit_test(test_colour),
        cmocka_unit_test(test_hostile_words), cmocka_unit_test(test_json),
        cmocka_unit_test(test_no_room),
    };
    return cmocka_run_group_tests_name("cli/doctor/report", tests, NULL, NULL);
}
