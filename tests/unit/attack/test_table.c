#include "attack/options.h"
#include "attack/table.h"
#include "test.h"

TEST(test_rows)
{
    assert_true(table_count >= 80);
    for (size_t i = 0; i < table_count; i++) {
        const struct attack *attack = table_attacks[i];
        assert_row(attack->name, attack->tries != NULL && attack->tries[0] != '\0');
        bool speaks = (attack->inside != NULL) != (attack->script != NULL);
        /* What callers do is said by themselves; what runs inside then is theirs. */
        bool calls = attack->calls != NULL;
        assert_row(attack->name, calls == (attack->group >= ATTACK_CALLERS));
        assert_row(attack->name, calls || speaks != (attack->command != NULL) || attack->status == 125);
        assert_row(attack->name, !attack->ends_daemon || attack->as_operator);
        /* A control is the same attempt. */
        assert_row(attack->name, attack->control == CONTROL_NONE || speaks);
        assert_row(attack->name, (attack->control == CONTROL_WITHOUT) == (attack->script != NULL));
        assert_row(attack->name, attack->round_option == NULL || strstr(attack->round_option, "%u") != NULL);
        assert_row(attack->name, attack->options[ATTACK_OPTIONS_MAX - 1] == NULL);
        assert_row(attack->name, strspn(attack->name, "abcdefghijklmnopqrstuvwxyz0123456789-") == strlen(attack->name));
        /* Groups are together, and the name finds this row and no other. */
        assert_row(attack->name, i == 0 || attack->group >= table_attacks[i - 1]->group);
        assert_row(attack->name, table_find(attack->name) == attack);
    }
    assert_null(table_find("none"));
}

static int parse(const char *const *words, struct attack_options *ret_options, struct error *err)
{
    return options_parse((char **)(uintptr_t)words, ret_options, err);
}

TEST(test_options)
{
    static const char *const words[] = {"--hutch", "h", "--json", "--state=s", "bpf", "io-uring", NULL};
    struct attack_options options;
    struct error err = {0};

    assert_int_equal(parse(words, &options, &err), 0);
    assert_string_equal(options.hutch, "h");
    assert_string_equal(options.state, "s");
    assert_true(options.json && !options.list && !options.help);
    assert_true(options_want(&options, table_find("bpf")));
    assert_false(options_want(&options, table_find("kexec")));
    assert_int_equal(parse(words + 6, &options, &err), -EINVAL);
}

TEST(test_all)
{
    static const char *const words[] = {"--hutch=h", NULL};
    struct attack_options options;
    struct error err = {0};

    assert_int_equal(parse(words, &options, &err), 0);
    for (size_t i = 0; i < table_count; i++)
        assert_row(table_attacks[i]->name, options_want(&options, table_attacks[i]));
}

TEST(test_bad_options)
{
    static const struct {
        const char *words[3];
        const char *message;
    } rows[] = {
        {{"--jsn"}, "unknown option --jsn; did you mean --json?"},
        {{"--zzzzzzzzz"}, "unknown option --zzzzzzzzz; 'hutch attack --help' lists them"},
        {{"--json=yes"}, "--json takes no value"},
        {{"--state"}, "--state needs a value: --state FOLDER"},
        {{"--hutch="}, "--hutch needs a value: --hutch FILE"},
        {{"io-urin"}, "there is no attack 'io-urin'; did you mean io-uring?"},
        {{"zzzzzzzzzzzzz"}, "there is no attack 'zzzzzzzzzzzzz'; 'hutch attack --list' lists them"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct attack_options options;
        struct error err = {0};
        assert_row(rows[i].message, parse(rows[i].words, &options, &err) < 0);
        assert_string_equal(err.message, rows[i].message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_all),
        cmocka_unit_test(test_bad_options),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
