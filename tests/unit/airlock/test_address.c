#include "airlock/address.h"
#include "test.h"

#include <netinet/in.h>

static const struct {
    const char *text;
    bool vetted; /* nobody is led there */
} rows[] = {
    {"93.184.216.34", false},
    {"203.0.113.9", false},
    {"8.8.8.8", false},
    {"172.15.255.255", false},
    {"172.32.0.0", false},
    {"100.63.255.255", false},
    {"100.128.0.0", false},
    {"198.17.255.255", false},
    {"198.20.0.0", false},
    {"0.0.0.0", true},
    {"10.1.2.3", true},
    {"100.100.100.200", true},
    {"127.0.0.1", true},
    {"127.255.255.255", true},
    {"168.63.129.15", false},
    {"168.63.129.16", true},
    {"169.254.169.254", true},
    {"172.16.0.1", true},
    {"172.31.255.255", true},
    {"192.0.0.192", true},
    {"192.168.1.1", true},
    {"198.18.0.1", true},
    {"198.19.255.255", true},
    {"224.0.0.1", true},
    {"255.255.255.255", true},
    {"2606:2800:220:1::1", false},
    {"2001:4860:4860::8888", false},
    {"64:ff9b::5db8:d822", false}, /* NAT64 of 93.184.216.34 */
    {"2002:5db8:d822::1", false},  /* 6to4 of the same */
    {"::", true},
    {"::1", true},
    {"::7f00:1", true},
    {"::ffff:127.0.0.1", true},
    {"::ffff:93.184.216.34", false}, /* is parsed as what it means */
    {"::ffff:0:93.184.216.34", true},
    {"64:ff9b::7f00:1", true},
    {"64:ff9b::a9fe:a9fe", true},
    {"64:ff9b:1::1", true},
    {"2002:7f00:1::1", true},
    {"2002:c0a8:101::1", true},
    {"2001::1", true},
    {"100::1", true},
    {"3fff:fff::1", true},
    {"3fff:1000::1", false},
    {"5f00:1::1", true},
    {"5f01::1", false},
    {"fd00:ec2::254", true},
    {"fe80::1", true},
    {"fec0::1", true},
    {"ff02::1", true},
};

TEST(special_addresses_are_known)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct address address;
        assert_row(rows[i].text, address_parse(rows[i].text, strlen(rows[i].text), &address) == 0);
        assert_row(rows[i].text, (address_vet(&address) != NULL) == rows[i].vetted);
    }
}

TEST(ipv4_inside_ipv6_is_found)
{
    static const struct {
        const char *outer;
        const char *inner;
    } wrapped[] = {{"64:ff9b::5db8:d822", "93.184.216.34"}, {"2002:5db8:d822::1", "93.184.216.34"}};
    struct address outer;
    struct address inner;
    char text[ADDRESS_TEXT_SIZE];

    for (size_t i = 0; i < COUNT(wrapped); i++) {
        assert_int_equal(address_parse(wrapped[i].outer, strlen(wrapped[i].outer), &outer), 0);
        assert_true(address_unwrap(&outer, &inner));
        address_format(&inner, text);
        assert_string_equal(text, wrapped[i].inner);
        assert_false(address_unwrap(&inner, &outer));
    }
    assert_int_equal(address_parse("2001:db8::1", 11, &outer), 0);
    assert_false(address_unwrap(&outer, &inner));
}

TEST(only_full_addresses_are_parsed)
{
    static const char *const bad[] = {"",          "1.2.3",    "0x7f.0.0.1",   "2130706433",
                                      "1.2.3.4.5", "01.2.3.4", "1.2.3.256",    "1.2.3.4 ",
                                      ":::",       "[::1]",    "fe80::1%eth0", "1.2.3.4:80"};

    for (size_t i = 0; i < COUNT(bad); i++) {
        struct address address;
        assert_row(bad[i], address_parse(bad[i], strlen(bad[i]), &address) == -EINVAL);
    }
}

TEST(sockets_carry_them_there_and_back)
{
    static const char *const texts[] = {"93.184.216.34", "2606:2800:220:1::1"};

    for (size_t i = 0; i < COUNT(texts); i++) {
        struct address there;
        struct address back;
        struct sockaddr_storage socket;
        uint16_t port = 0;
        char text[ADDRESS_TEXT_SIZE];
        assert_int_equal(address_parse(texts[i], strlen(texts[i]), &there), 0);
        assert_true(address_to_socket(&there, 443, &socket) > 0);
        assert_int_equal(address_from_socket(&socket, &back, &port), 0);
        assert_true(address_equal(&there, &back));
        assert_int_equal(port, 443);
        address_format(&back, text);
        assert_string_equal(text, texts[i]);
    }
}

TEST(all_that_leads_to_loopback_is_known)
{
    static const char *const own[] = {"127.0.0.1",        "127.9.9.9",     "0.0.0.0", "0.1.2.3",       "::1",
                                      "::ffff:127.0.0.1", "::ffff:7f00:1", "::",      "::ffff:0.0.0.0"};
    static const char *const others[] = {"1.0.0.0", "128.0.0.1", "::2", "1::", "::ffff:1.0.0.0"};
    struct address address;

    for (size_t i = 0; i < COUNT(own); i++) {
        assert_int_equal(address_parse(own[i], strlen(own[i]), &address), 0);
        assert_row(own[i], address_is_loopback(&address));
    }
    for (size_t i = 0; i < COUNT(others); i++) {
        assert_int_equal(address_parse(others[i], strlen(others[i]), &address), 0);
        assert_row(others[i], !address_is_loopback(&address));
    }
    /* As a resolver may say it, which nobody unwraps. */
    address = (struct address){6, {[10] = 0xff, [11] = 0xff, [12] = 93}};
    assert_non_null(address_vet(&address));
}

TEST(a_mapped_address_of_a_socket_is_ipv4)
{
    struct sockaddr_storage storage = {0};
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&storage;
    struct address address;
    uint16_t port = 0;
    char text[ADDRESS_TEXT_SIZE];

    in6->sin6_family = AF_INET6;
    in6->sin6_addr.s6_addr[10] = in6->sin6_addr.s6_addr[11] = 0xff;
    in6->sin6_addr.s6_addr[12] = 198;
    in6->sin6_addr.s6_addr[13] = 18;
    assert_int_equal(address_from_socket(&storage, &address, &port), 0);
    address_format(&address, text);
    assert_string_equal(text, "198.18.0.0");
    storage.ss_family = AF_UNIX;
    assert_int_equal(address_from_socket(&storage, &address, &port), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(special_addresses_are_known),         cmocka_unit_test(ipv4_inside_ipv6_is_found),
        cmocka_unit_test(only_full_addresses_are_parsed),      cmocka_unit_test(sockets_carry_them_there_and_back),
        cmocka_unit_test(all_that_leads_to_loopback_is_known), cmocka_unit_test(a_mapped_address_of_a_socket_is_ipv4),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
