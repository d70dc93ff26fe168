#include "airlock/names.h"
#include "test.h"

#include <stdio.h>

enum { MOST = 50 };
#define SECOND UINT64_C(1000000000)
#define KEPT (NAMES_KEPT_SECONDS * SECOND)

static struct names *make(void)
{
    struct names *names = NULL;
    struct error err;

    assert_int_equal(names_new(MOST, 4000000000U, &names, &err), 0);
    return names;
}

static uint32_t assign(struct names *names, const char *name, uint64_t now_ns)
{
    uint32_t number = 0;

    assert_int_equal(names_assign(names, name, now_ns, &number), 0);
    return number;
}

TEST(a_name_keeps_its_number)
{
    struct names *names = make();
    uint32_t a = assign(names, "a.test", 0);
    uint32_t b = assign(names, "b.test", 0);

    assert_int_not_equal(a, b);
    assert_int_equal(assign(names, "a.test", SECOND), a);
    assert_string_equal(names_find(names, a), "a.test");
    assert_string_equal(names_find(names, b), "b.test");
    assert_null(names_find(names, b + 1));
    assert_int_equal(names_count(names), 2);
    names_free(names);
}

TEST(a_full_table_gives_up_only_what_nobody_uses)
{
    struct names *names = make();
    uint32_t numbers[MOST];
    uint32_t number = 0;
    char name[32];

    for (int i = 0; i < MOST; i++) {
        (void)snprintf(name, sizeof name, "n%d.test", i);
        numbers[i] = assign(names, name, (uint64_t)i);
    }
    assert_int_equal(names_assign(names, "one-more.test", KEPT - 1, &number), -ENOBUFS);
    names_hold(names, numbers[0]);
    number = assign(names, "one-more.test", KEPT + MOST);
    assert_string_equal(names_find(names, numbers[0]), "n0.test");
    assert_null(names_find(names, numbers[1]));
    assert_string_equal(names_find(names, number), "one-more.test");
    assert_int_equal(names_count(names), MOST);
    names_drop(names, numbers[0], KEPT + MOST);
    assert_string_equal(names_find(names, numbers[0]), "n0.test");
    names_free(names);
}

TEST(a_name_that_failed_has_no_claim_to_its_place)
{
    static const struct address pin = {4, {93, 184, 216, 34}};
    struct names *names = make();
    uint32_t numbers[MOST];
    uint32_t number = 0;
    char name[32];

    for (int i = 0; i < MOST; i++) {
        (void)snprintf(name, sizeof name, "n%d.test", i);
        numbers[i] = assign(names, name, 0);
    }
    /* One that had addresses before may be remembered by a client. */
    names_pin(names, numbers[1], &pin, 1, SECOND);
    names_fail(names, numbers[1]);
    assert_int_equal(names_assign(names, "one-more.test", 1, &number), -ENOBUFS);
    names_fail(names, numbers[2]);
    assert_int_equal(assign(names, "n2.test", 1), numbers[2]);
    assert_int_equal(names_assign(names, "one-more.test", 1, &number), -ENOBUFS);
    names_fail(names, numbers[2]);
    number = assign(names, "one-more.test", 1);
    assert_null(names_find(names, numbers[2]));
    assert_string_equal(names_find(names, number), "one-more.test");
    names_free(names);
}

TEST(a_number_comes_again_only_after_all_others)
{
    struct names *names = make();
    static uint8_t seen[NAMES_ADDRESSES];
    uint32_t held = assign(names, "held.test", 0);
    uint64_t now = 0;
    char name[32];

    names_hold(names, held);
    memset(seen, 0, sizeof seen);
    seen[held] = 1;
    for (int i = 0; i < NAMES_ADDRESSES - NAMES_FIRST - 1; i++) {
        now += KEPT;
        (void)snprintf(name, sizeof name, "n%d.test", i);
        uint32_t number = assign(names, name, now);
        assert_true(number >= NAMES_FIRST && number < NAMES_ADDRESSES);
        assert_int_equal(seen[number]++, 0);
        assert_string_equal(names_find(names, number), name);
    }
    for (int i = 0; i < 1000; i++) {
        now += KEPT;
        (void)snprintf(name, sizeof name, "again%d.test", i);
        assert_int_not_equal(assign(names, name, now), held);
    }
    assert_string_equal(names_find(names, held), "held.test");
    names_free(names);
}

TEST(real_addresses_are_pinned_for_a_while)
{
    struct names *names = make();
    struct address pins[NAMES_PINS_MAX];
    struct address address = {.family = 4, .bytes = {8, 8, 8, 8}};
    uint32_t number = assign(names, "a.test", 0);

    assert_int_equal(names_pinned(names, number, 0, pins), 0);
    names_pin(names, number, &address, 1, SECOND);
    assert_int_equal(names_pinned(names, number, SECOND - 1, pins), 1);
    assert_true(address_equal(&pins[0], &address));
    assert_int_equal(names_pinned(names, number, SECOND, pins), 0);
    assert_int_equal(names_pinned(names, number + 1, 0, pins), 0);
    names_free(names);
}

TEST(numbers_are_addresses_of_two_families)
{
    static const uint32_t numbers[] = {0, 256, 65535, 65536, NAMES_ADDRESSES - 1};
    struct address address;
    uint32_t number = 0;
    char text[ADDRESS_TEXT_SIZE];

    for (size_t i = 0; i < COUNT(numbers); i++) {
        for (uint8_t family = 4; family <= 6; family += 2) {
            names_address(numbers[i], family, &address);
            assert_true(names_number(&address, &number));
            assert_int_equal(number, numbers[i]);
            assert_non_null(address_vet(&address));
        }
    }
    names_address(NAMES_ADDRESSES - 1, 4, &address);
    address_format(&address, text);
    assert_string_equal(text, "198.19.255.255");
    names_address(258, 6, &address);
    address_format(&address, text);
    assert_string_equal(text, "fd68:7574:6368::102");
    static const char *const others[] = {"198.17.255.255",        "198.20.0.0",           "8.8.8.8", "::1",
                                         "fd68:7574:6368::2:0:0", "fd68:7574:6368::2:102"};
    for (size_t i = 0; i < COUNT(others); i++) {
        assert_int_equal(address_parse(others[i], strlen(others[i]), &address), 0);
        assert_row(others[i], !names_number(&address, &number));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_keeps_its_number),
        cmocka_unit_test(a_full_table_gives_up_only_what_nobody_uses),
        cmocka_unit_test(a_name_that_failed_has_no_claim_to_its_place),
        cmocka_unit_test(a_number_comes_again_only_after_all_others),
        cmocka_unit_test(real_addresses_are_pinned_for_a_while),
        cmocka_unit_test(numbers_are_addresses_of_two_families),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
