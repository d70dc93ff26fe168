#include "airlock/dns.h"
#include "test.h"

static size_t ask(uint8_t *data, const char *name, uint16_t type)
{
    static const uint8_t head[DNS_HEADER] = {0x12, 0x34, 0x01, 0, 0, 1, 0, 0, 0, 0, 0, 0};
    size_t at = DNS_HEADER;

    memcpy(data, head, sizeof head);
    while (*name != '\0') {
        size_t label = strcspn(name, ".");
        data[at++] = (uint8_t)label;
        memcpy(data + at, name, label);
        at += label;
        name += label + (name[label] == '.' ? 1 : 0);
    }
    data[at++] = 0;
    data[at++] = (uint8_t)(type >> 8);
    data[at++] = (uint8_t)type;
    data[at++] = 0;
    data[at++] = 1;
    return at;
}

TEST(a_question_is_read)
{
    uint8_t data[512];
    struct dns_query query;
    size_t length = ask(data, "WwW.Example.COM", DNS_A);

    assert_int_equal(dns_parse(data, length, &query), DNS_OK);
    assert_string_equal(query.name, "www.example.com");
    assert_true(query.is_host);
    assert_int_equal(query.type, DNS_A);
    assert_int_equal(query.id, 0x1234);
    assert_false(query.has_edns);
    memcpy(data + length, "\0\0\x29\x04\xd0\0\0\0\0\0\0", 11);
    data[11] = 1;
    assert_int_equal(dns_parse(data, length + 11, &query), DNS_OK);
    assert_true(query.has_edns);
    for (size_t cut = 0; cut < length; cut++)
        assert_int_not_equal(dns_parse(data, cut, &query), DNS_OK);
}

TEST(an_answer_has_the_address_and_repeats_the_question)
{
    static const uint8_t address[] = {198, 18, 1, 2};
    uint8_t data[512];
    uint8_t answer[DNS_ANSWER_MAX];
    struct dns_query query;
    size_t length = ask(data, "MiXed.test", DNS_A);

    assert_int_equal(dns_parse(data, length, &query), DNS_OK);
    size_t size = dns_build(&query, &(struct dns_answer){DNS_OK, address, 60}, answer);
    assert_int_equal(size, length + 16);
    assert_memory_equal(answer, "\x12\x34\x85\x80\0\1\0\1\0\0\0\0", 12);
    assert_memory_equal(answer + 12, data + 12, length - 12);
    assert_memory_equal(answer + length, "\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\xc6\x12\1\2", 16);
    size = dns_build(&query, &(struct dns_answer){.code = DNS_NXDOMAIN}, answer);
    assert_int_equal(size, length);
    assert_memory_equal(answer + 2, "\x85\x83\0\1\0\0", 6);
    size = dns_build(&query, &(struct dns_answer){.code = DNS_OK}, answer);
    assert_memory_equal(answer + 2, "\x85\x80\0\1\0\0", 6);
}

TEST(edns_is_answered_with_edns)
{
    static const uint8_t address[16] = {0xfd};
    uint8_t data[512];
    uint8_t answer[DNS_ANSWER_MAX];
    struct dns_query query;
    size_t length = ask(data, "a.test", DNS_AAAA);

    memcpy(data + length, "\0\0\x29\x04\xd0\0\0\0\0\0\0", 11);
    data[11] = 1;
    assert_int_equal(dns_parse(data, length + 11, &query), DNS_OK);
    size_t size = dns_build(&query, &(struct dns_answer){DNS_OK, address, 60}, answer);
    assert_int_equal(size, length + 28 + 11);
    assert_memory_equal(answer + size - 11, "\0\0\x29\x04\xd0\0\0\0\0\0\0", 11);
}

TEST(odd_questions_get_their_codes)
{
    uint8_t data[512];
    struct dns_query query;
    size_t length = ask(data, "a.test", DNS_A);

    data[5] = 2;
    assert_int_equal(dns_parse(data, length, &query), DNS_FORMERR);
    data[5] = 0;
    assert_int_equal(dns_parse(data, length, &query), DNS_FORMERR);
    data[5] = 1;
    data[7] = 1;
    assert_int_equal(dns_parse(data, length, &query), DNS_FORMERR);
    data[7] = 0;
    data[2] = 0x28;
    assert_int_equal(dns_parse(data, length, &query), DNS_NOTIMP);
    data[2] = 0x81;
    assert_int_equal(dns_parse(data, length, &query), -EBADMSG);
    data[2] = 1;
    data[length - 1] = 3;
    assert_int_equal(dns_parse(data, length, &query), DNS_REFUSED);
}

TEST(pointers_and_long_names_are_refused)
{
    uint8_t data[1024];
    struct dns_query query;
    size_t length = ask(data, "a.test", DNS_A);
    char name[300];

    data[12] = 0xc0;
    data[13] = 12;
    assert_int_equal(dns_parse(data, length, &query), DNS_FORMERR);
    memset(name, 'a', sizeof name);
    for (size_t i = 63; i < sizeof name; i += 64)
        name[i] = '.';
    name[253] = '\0';
    length = ask(data, name, DNS_A);
    assert_int_equal(dns_parse(data, length, &query), DNS_OK);
    assert_int_equal(strlen(query.name), 253);
    name[253] = 'a';
    name[254] = '\0';
    length = ask(data, name, DNS_A);
    assert_int_equal(dns_parse(data, length, &query), DNS_FORMERR);
}

TEST(what_is_no_name_of_a_host_is_told_as_such)
{
    uint8_t data[512];
    struct dns_query query;
    size_t length = ask(data, "a b\x01\xff.test", DNS_A);

    assert_int_equal(dns_parse(data, length, &query), DNS_OK);
    assert_false(query.is_host);
    assert_string_equal(query.name, "a*b**.test");
    length = ask(data, "", DNS_A);
    assert_int_equal(dns_parse(data, length, &query), DNS_OK);
    assert_false(query.is_host);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_question_is_read),
        cmocka_unit_test(an_answer_has_the_address_and_repeats_the_question),
        cmocka_unit_test(edns_is_answered_with_edns),
        cmocka_unit_test(odd_questions_get_their_codes),
        cmocka_unit_test(pointers_and_long_names_are_refused),
        cmocka_unit_test(what_is_no_name_of_a_host_is_told_as_such),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
