#include "airlock/resolv_conf.h"
#include "test.h"

static const struct {
    const char *text;
    const char *list;
} rows[] = {
    {"", ""},
    {"search example.com\n", ""},
    {"nameserver 192.0.2.1", "192.0.2.1"},
    {"# nameserver 192.0.2.9\nnameserver 192.0.2.1\n\n  nameserver\t2001:db8::1 \noptions edns0\n",
     "192.0.2.1,[2001:db8::1]"},
    {"nameserver example.com\nnameserver 192.0.2.2\nnameserver fe80::1%eth0\n", "192.0.2.2"},
    {"nameserver\n192.0.2.1\n", ""},
    {"nameserverx 192.0.2.1\n", ""},
};

TEST(resolvers_are_found)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        char list[128];
        resolv_conf_servers(rows[i].text, list, sizeof list);
        if (strcmp(list, rows[i].list) != 0)
            fail_msg("%s: %s", rows[i].text, list);
    }
}

TEST(what_does_not_fit_is_left_out)
{
    char list[24];

    resolv_conf_servers("nameserver 192.0.2.1\nnameserver 192.0.2.2\nnameserver 192.0.2.3\n", list, sizeof list);
    assert_string_equal(list, "192.0.2.1,192.0.2.2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resolvers_are_found),
        cmocka_unit_test(what_does_not_fit_is_left_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
