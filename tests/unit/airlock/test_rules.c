#include "airlock/rules.h"
#include "test.h"

#include <stdlib.h>

static struct rules *make(enum rules_mode mode, const char *const *allow, const char *const *deny)
{
    struct rules *rules = NULL;
    struct error err = {0};

    assert_int_equal(rules_new(mode, &rules, &err), 0);
    for (; allow != NULL && *allow != NULL; allow++)
        assert_row(*allow, rules_add(rules, RULES_ALLOW, RULES_OF_SANDBOX, *allow, &err) == 0);
    for (; deny != NULL && *deny != NULL; deny++)
        assert_row(*deny, rules_add(rules, RULES_DENY, RULES_OF_ALL, *deny, &err) == 0);
    return rules;
}

static const char *const allowed[] = {"Example.COM.",
                                      "*.pkg.test",
                                      "db.test:5432",
                                      "_srv.test",
                                      "203.0.113.7",
                                      "203.0.113.8:22",
                                      "host.hutch:8080",
                                      "localhost",
                                      "xn--bcher-kva.ch",
                                      "[2001:db8::5]:443",
                                      "2001:db8::6",
                                      "127.0.0.1",
                                      "0.0.0.0",
                                      "[::ffff:127.0.0.1]:80",
                                      "::",
                                      NULL};
static const char *const denied[] = {"bad.pkg.test", "example.com:25", NULL};

static const struct {
    const char *name;
    uint16_t port;
    bool allowed;
    enum rules_reason reason;
    const char *rule;
} names[] = {
    {"example.com", 443, true, RULES_MATCHED, "Example.COM."},
    {"example.com", 0, true, RULES_MATCHED, "Example.COM."},
    {"example.com", 25, false, RULES_MATCHED, "example.com:25"},
    {"www.example.com", 443, false, RULES_UNLISTED, ""},
    {"xample.com", 443, false, RULES_UNLISTED, ""},
    {"example.com.evil.test", 443, false, RULES_UNLISTED, ""},
    {"a.pkg.test", 1, true, RULES_MATCHED, "*.pkg.test"},
    {"a.b.pkg.test", 1, true, RULES_MATCHED, "*.pkg.test"},
    {"pkg.test", 1, false, RULES_UNLISTED, ""},
    {"evilpkg.test", 1, false, RULES_UNLISTED, ""},
    {"bad.pkg.test", 1, false, RULES_MATCHED, "bad.pkg.test"},
    {"bad.pkg.test", 0, false, RULES_MATCHED, "bad.pkg.test"},
    {"db.test", 5432, true, RULES_MATCHED, "db.test:5432"},
    {"db.test", 0, true, RULES_MATCHED, "db.test:5432"},
    {"db.test", 5433, false, RULES_UNLISTED, ""},
    {"_srv.test", 80, true, RULES_MATCHED, "_srv.test"},
    {"host.hutch", 8080, true, RULES_MATCHED, "host.hutch:8080"},
    {"host.hutch", 8081, false, RULES_UNLISTED, ""},
    {"localhost", 80, false, RULES_LOCAL, ""},
    {"a.localhost", 80, false, RULES_LOCAL, ""},
    {"xn--bcher-kva.ch", 443, true, RULES_MATCHED, "xn--bcher-kva.ch"},
};

TEST(names_are_allowed_and_denied_by_rule)
{
    struct rules *rules = make(RULES_ALLOWLIST, allowed, denied);

    for (size_t i = 0; i < COUNT(names); i++) {
        struct rules_verdict verdict = rules_check_name(rules, names[i].name, names[i].port);
        assert_row(names[i].name, verdict.allowed == names[i].allowed);
        assert_row(names[i].name, verdict.reason == names[i].reason);
        assert_row(names[i].name, strcmp(verdict.rule, names[i].rule) == 0);
    }
    rules_free(rules);
}

TEST(addresses_need_a_rule_that_names_them)
{
    static const struct {
        const char *address;
        uint16_t port;
        bool allowed;
    } list[] = {
        {"203.0.113.7", 1, true},   {"203.0.113.8", 22, true},  {"203.0.113.8", 23, false},   {"203.0.113.9", 1, false},
        {"2001:db8::5", 443, true}, {"2001:db8::5", 80, false}, {"2001:db8::6", 80, true},    {"127.0.0.1", 80, false},
        {"0.0.0.0", 80, false},     {"::", 80, false},          {"::ffff:7f00:1", 80, false},
    };
    struct rules *rules = make(RULES_ALLOWLIST, allowed, denied);
    struct rules *full = make(RULES_FULL, allowed, NULL);

    for (size_t i = 0; i < COUNT(list); i++) {
        struct address address;
        assert_int_equal(address_parse(list[i].address, strlen(list[i].address), &address), 0);
        assert_row(list[i].address, rules_check_address(rules, &address, list[i].port).allowed == list[i].allowed);
        assert_row(list[i].address, rules_check_address(full, &address, list[i].port).allowed == list[i].allowed);
    }
    rules_free(rules);
    rules_free(full);
}

TEST(modes_decide_what_no_rule_does)
{
    static const char *const wide[] = {"*.hutch", NULL};
    struct rules *none = make(RULES_NONE, allowed, NULL);
    struct rules *full = make(RULES_FULL, wide, denied);
    struct rules *empty = make(RULES_ALLOWLIST, NULL, NULL);

    assert_false(rules_check_name(none, "example.com", 443).allowed);
    assert_int_equal(rules_check_name(none, "example.com", 443).reason, RULES_CLOSED);
    assert_true(rules_check_name(full, "any.test", 443).allowed);
    assert_int_equal(rules_check_name(full, "any.test", 443).reason, RULES_OPEN);
    assert_false(rules_check_name(full, "bad.pkg.test", 443).allowed);
    assert_false(rules_check_name(full, "localhost", 80).allowed);
    assert_false(rules_check_name(full, RULES_HOST, 80).allowed);
    assert_false(rules_check_name(empty, "any.test", 443).allowed);
    assert_int_equal(rules_mode(full), RULES_FULL);
    rules_free(none);
    rules_free(full);
    rules_free(empty);
    rules_free(NULL);
}

static const struct {
    const char *text;
    const char *message;
} bad[] = {
    {"", "a rule is empty"},
    {"*", "a star needs something behind it"},
    {"*.", "a star may only stand in front"},
    {"a.*.test", "at character 1: a star may only stand in front"},
    {"*foo.test", "a star may only stand in front"},
    {"https://a.test", "at character 6: it is a URL"},
    {"a.test/path", "at character 7: neither paths nor ranges"},
    {"10.0.0.0/8", "neither paths nor ranges"},
    {"a.test:0", "at character 7: the port is not a number"},
    {"a.test:65536", "the port is not a number"},
    {"a.test:http", "the port is not a number"},
    {"a.test:", "the port is not a number"},
    {"a..test", "there is nothing between two dots"},
    {".test", "there is nothing between two dots"},
    {"a b", "it has a blank in it"},
    {"b\xc3\xbc"
     "cher.ch",
     "write it in its ASCII form"},
    {"127.1", "it ends in a number"},
    {"2130706433", "it ends in a number"},
    {"0x7f000001", "it ends in a number"},
    {"*.1.2.3.4", "an address has nothing below it"},
    {"[::1", "the port is not a number"},
    {"host.hutch", "host.hutch:PORT"},
    {"*.host.hutch:80", "host.hutch:PORT"},
};

TEST(what_is_no_rule_is_refused_with_where_and_why)
{
    struct rules *rules = make(RULES_ALLOWLIST, NULL, NULL);
    struct error err;
    char longest[400];

    for (size_t i = 0; i < COUNT(bad); i++) {
        err = (struct error){0};
        assert_row(bad[i].text, rules_add(rules, RULES_ALLOW, RULES_OF_SANDBOX, bad[i].text, &err) == -EINVAL);
        if (strstr(err.message, bad[i].message) == NULL)
            fail_msg("%s: %s", bad[i].text, err.message);
    }
    memset(longest, 'a', sizeof longest);
    longest[300] = '\0';
    for (size_t i = 50; i < 300; i += 50)
        longest[i] = '.';
    assert_int_equal(rules_add(rules, RULES_ALLOW, RULES_OF_SANDBOX, longest, &err), -EINVAL);
    assert_non_null(strstr(err.message, "longer than 253"));
    longest[64] = 'a';
    longest[50] = 'a';
    longest[70] = '\0';
    assert_int_equal(rules_add(rules, RULES_ALLOW, RULES_OF_SANDBOX, longest, &err), -EINVAL);
    assert_non_null(strstr(err.message, "longer than 63"));
    rules_free(rules);
}

TEST(there_are_only_so_many)
{
    struct rules *rules = make(RULES_ALLOWLIST, NULL, NULL);
    struct error err = {0};

    for (int i = 0; i < RULES_MAX; i++)
        assert_int_equal(rules_add(rules, RULES_ALLOW, RULES_OF_SANDBOX, "a.test", &err), 0);
    assert_true(rules_add(rules, RULES_ALLOW, RULES_OF_SANDBOX, "a.test", &err) < 0);
    assert_int_equal(err.code, ERROR_LIMIT);
    rules_free(rules);
}

TEST(a_verdict_is_explained_in_words)
{
    struct rules *rules = make(RULES_ALLOWLIST, allowed, denied);
    struct rules_verdict verdict = rules_check_name(rules, "other.test", 443);
    char text[400];

    rules_explain(&verdict, "other.test", 443, text, sizeof text);
    assert_string_equal(text,
                        "other.test:443 is not allowed: no rule names it; the rule 'other.test:443' would allow it");
    struct address address = {6, {0x20, 0x01, 0x0d, 0xb8, [15] = 9}};
    struct error err = {0};
    verdict = rules_check_address(rules, &address, 443);
    rules_explain(&verdict, "2001:db8::9", 443, text, sizeof text);
    assert_non_null(strstr(text, "the rule '[2001:db8::9]:443' would allow it"));
    assert_int_equal(rules_add(rules, RULES_ALLOW, RULES_OF_SANDBOX, "[2001:db8::9]:443", &err), 0);
    assert_true(rules_check_address(rules, &address, 443).allowed);
    verdict = rules_check_name(rules, "bad.pkg.test", 0);
    rules_explain(&verdict, "bad.pkg.test", 0, text, sizeof text);
    assert_string_equal(text, "bad.pkg.test is denied by the rule 'bad.pkg.test' for every sandbox");
    rules_free(rules);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_allowed_and_denied_by_rule),
        cmocka_unit_test(addresses_need_a_rule_that_names_them),
        cmocka_unit_test(modes_decide_what_no_rule_does),
        cmocka_unit_test(what_is_no_rule_is_refused_with_where_and_why),
        cmocka_unit_test(there_are_only_so_many),
        cmocka_unit_test(a_verdict_is_explained_in_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
