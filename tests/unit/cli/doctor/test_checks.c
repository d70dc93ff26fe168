#include "cli/doctor/check.h"
#include "test.h"

static size_t index_of(const char *name)
{
    size_t i = 0;

    while (i < check_count && strcmp(checks[i].name, name) != 0)
        i++;
    return i;
}

TEST(test_names)
{
    for (size_t i = 0; i < check_count; i++) {
        assert_row(checks[i].name, index_of(checks[i].name) == i);
        assert_row(checks[i].name,
                   strspn(checks[i].name, "abcdefghijklmnopqrstuvwxyz0123456789-.") == strlen(checks[i].name));
    }
}

/* The report starts a heading where the group changes. */
TEST(test_groups)
{
    for (size_t i = 1; i < check_count; i++)
        assert_row(checks[i].name, checks[i].group >= checks[i - 1].group);
}

/* What can be a no says what that means; what is needed for every sandbox also how to mend it, in words that fit. */
TEST(test_words)
{
    for (size_t i = 0; i < check_count; i++) {
        const struct check *check = &checks[i];
        assert_row(check->name, check->probe != NULL);
        if (check->group != CHECK_AROUND) {
            assert_row(check->name, check->meaning != NULL && check->meaning[0] != '\0');
            assert_row(check->name, check->mend != NULL && check->mend[0] != '\0');
        }
        if (check->meaning != NULL)
            assert_row(check->name, check->meaning[strlen(check->meaning) - 1] == '.' && strlen(check->meaning) <= 110);
    }
}

/* Needs stand before what needs them, and what every sandbox needs depends on nothing that it does not. */
TEST(test_needs)
{
    for (size_t i = 0; i < check_count; i++) {
        for (size_t n = 0; n < CHECK_NEEDS_MAX && checks[i].needs[n] != NULL; n++) {
            size_t need = index_of(checks[i].needs[n]);
            assert_row(checks[i].name, need < i);
            if (checks[i].group == CHECK_NEEDED)
                assert_row(checks[i].name, checks[need].group == CHECK_NEEDED);
        }
    }
}

TEST(test_findings)
{
    struct finding finding = {0};
    struct probe probe = {.finding = &finding};

    finding_no(&probe, ENOENT, "opening %s", "it");
    assert_int_equal(finding.state, FINDING_NO);
    assert_string_equal(finding.found, "opening it: No such file or directory");
    finding_mend(&probe, "make %s", "it");
    assert_string_equal(finding.mend, "make it");
    finding_yes(&probe, "%d", 7);
    assert_int_equal(finding.state, FINDING_YES);
    assert_string_equal(finding.found, "7");
    finding_no(&probe, EPERM, "%1000s", "x");
    assert_int_equal(strlen(finding.found), sizeof finding.found - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_names), cmocka_unit_test(test_groups),
                                       cmocka_unit_test(test_words), cmocka_unit_test(test_needs),
                                       cmocka_unit_test(test_findings)};
    return cmocka_run_group_tests_name("cli/doctor/checks", tests, NULL, NULL);
}
