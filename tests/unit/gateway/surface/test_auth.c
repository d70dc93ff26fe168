#include "gateway/surface/auth.h"
#include "test.h"

static struct headers one(const char *name, const char *value)
{
    struct headers headers = {.count = name != NULL ? 1 : 0};

    headers.items[0] = (struct header){name, value};
    return headers;
}

TEST(credentials_are_read)
{
    static const struct {
        const char *name;
        const char *value;
        enum auth_kind kind;
        const char *secret;
    } rows[] = {
        {NULL, NULL, AUTH_NONE, ""},
        {"Authorization", "Bearer abc", AUTH_KEY, "abc"},
        {"authorization", "bearer   abc", AUTH_KEY, "abc"},
        {"X-API-Key", "k e y", AUTH_KEY, "k e y"},
        {"Authorization", "Basic YWRtaW46cGFzcw==", AUTH_PASSWORD, "pass"},
        {"Authorization", "Basic YWRtaW46", AUTH_PASSWORD, ""},
        {"Authorization", "Basic YWRtaW46YTpi", AUTH_PASSWORD, "a:b"},
        {"Authorization", "Basic cm9vdDpwYXNz", AUTH_MALFORMED, ""}, /* root:pass */
        {"Authorization", "Basic YWRtaW4=", AUTH_MALFORMED, ""},     /* admin */
        {"Authorization", "Basic YWRtaW46YQBi", AUTH_MALFORMED, ""}, /* a NUL */
        {"Authorization", "Basic !!!!", AUTH_MALFORMED, ""},
        {"Authorization", "Basic YWRtaW46cGFzcw== x", AUTH_MALFORMED, ""},
        {"Authorization", "Bearer", AUTH_MALFORMED, ""},
        {"Authorization", "Bearer ", AUTH_MALFORMED, ""},
        {"Authorization", "Digest x", AUTH_MALFORMED, ""},
        {"Authorization", "", AUTH_MALFORMED, ""},
        {"X-API-Key", "", AUTH_MALFORMED, ""},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct headers headers = one(rows[i].name, rows[i].value);
        struct auth_claim claim;
        auth_read(&headers, &claim);
        assert_row(rows[i].value != NULL ? rows[i].value : "none", claim.kind == rows[i].kind);
        if (claim.kind == AUTH_KEY || claim.kind == AUTH_PASSWORD) {
            assert_int_equal(claim.length, strlen(rows[i].secret));
            assert_string_equal(claim.secret, rows[i].secret);
        }
        auth_forget(&claim);
        assert_int_equal(claim.secret[0], 0);
    }
}

TEST(credentials_given_twice_are_none)
{
    struct headers headers = one("Authorization", "Bearer abc");
    struct auth_claim claim;

    headers.items[headers.count++] = (struct header){"Authorization", "Bearer abc"};
    auth_read(&headers, &claim);
    assert_int_equal(claim.kind, AUTH_MALFORMED);
}

TEST(one_too_long_is_none)
{
    static char value[AUTH_SECRET_MAX + 2];
    struct headers headers = one("X-API-Key", value);
    struct auth_claim claim;

    memset(value, 'a', sizeof value - 1);
    auth_read(&headers, &claim);
    assert_int_equal(claim.kind, AUTH_MALFORMED);
    value[AUTH_SECRET_MAX] = '\0';
    auth_read(&headers, &claim);
    assert_int_equal(claim.kind, AUTH_KEY);
}

static struct config config_with(char **listen, size_t count)
{
    static char *hosts[] = {"hutch.example", "other.example:81"};
    static char *origins[] = {"https://page.example"};

    return (struct config){.server = {.listen = {true, count, listen},
                                      .hosts = {true, COUNT(hosts), hosts},
                                      .cors_origins = {true, COUNT(origins), origins}}};
}

TEST(only_our_hosts)
{
    static char *listen[] = {"127.0.0.1:8080", "[::1]:8080"};
    struct config config = config_with(listen, COUNT(listen));
    static const struct {
        const char *host;
        bool is_ours;
    } rows[] = {
        {"127.0.0.1:8080", true},  {"127.0.0.1", true},       {"[::1]:8080", true},         {"localhost", true},
        {"localhost:99", true},    {"hutch.example", true},   {"hutch.example:8080", true}, {"other.example:81", true},
        {"other.example", false},  {"evil.example", false},   {"127.0.0.2:8080", false},    {"", false},
        {"localhost.evil", false}, {"evil.localhost", false}, {"10.0.0.1", false},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        assert_row(rows[i].host, auth_host_is_ours(&config, rows[i].host) == rows[i].is_ours);
}

TEST(any_address_where_all_are_listened_on)
{
    static char *listen[] = {"0.0.0.0:8080"};
    struct config config = config_with(listen, COUNT(listen));

    assert_true(auth_host_is_ours(&config, "10.1.2.3:8080"));
    assert_true(auth_host_is_ours(&config, "[fe80::1]:8080"));
    assert_false(auth_host_is_ours(&config, "evil.example:8080"));
}

TEST(pages_are_told_from_programs)
{
    static char *listen[] = {"127.0.0.1:8080"};
    struct config config = config_with(listen, COUNT(listen));
    static const struct {
        const char *name;
        const char *value;
        enum auth_origin origin;
    } rows[] = {
        {NULL, NULL, AUTH_NO_PAGE},
        {"Origin", "https://page.example", AUTH_ALLOWED_PAGE},
        {"Origin", "http://127.0.0.1:8080", AUTH_OWN_PAGE},
        {"Origin", "http://127.0.0.1:9090", AUTH_FOREIGN_PAGE},
        {"Origin", "https://evil.example", AUTH_FOREIGN_PAGE},
        {"Origin", "null", AUTH_FOREIGN_PAGE},
        {"Sec-Fetch-Site", "none", AUTH_NO_PAGE},
        {"Sec-Fetch-Site", "same-origin", AUTH_OWN_PAGE},
        {"Sec-Fetch-Site", "cross-site", AUTH_FOREIGN_PAGE},
        {"Sec-Fetch-Site", "same-site", AUTH_FOREIGN_PAGE},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct headers headers = one(rows[i].name, rows[i].value);
        assert_row(rows[i].value != NULL ? rows[i].value : "none",
                   auth_origin(&config, &headers, "127.0.0.1:8080") == rows[i].origin);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(credentials_are_read),
        cmocka_unit_test(credentials_given_twice_are_none),
        cmocka_unit_test(one_too_long_is_none),
        cmocka_unit_test(only_our_hosts),
        cmocka_unit_test(any_address_where_all_are_listened_on),
        cmocka_unit_test(pages_are_told_from_programs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
