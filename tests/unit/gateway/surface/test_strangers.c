#include "gateway/surface/strangers.h"

#include "test.h"

#include <stdio.h>

static struct peer peer_of(const char *address)
{
    struct peer peer = {.kind = PEER_TCP};

    (void)snprintf(peer.address, sizeof peer.address, "%s", address);
    return peer;
}

static uint64_t reason_of(const struct stranger *stranger, const char *reason)
{
    size_t i = 0;

    while (strcmp(strangers_reason(i), reason) != 0)
        i++;
    return stranger->reasons[i];
}

TEST(test_the_first_are_recorded_the_rest_is_counted)
{
    struct strangers strangers = {0};
    struct peer peer = peer_of("192.0.2.1");

    for (int i = 1; i < STRANGERS_EACH; i++)
        assert_int_equal(strangers_note(&strangers, &peer, "not_found"), STRANGERS_RECORD);
    assert_null(strangers_next(&strangers, NULL));
    assert_int_equal(strangers_note(&strangers, &peer, "not_found"), STRANGERS_RECORD_LAST);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(strangers_note(&strangers, &peer, i % 4 == 0 ? "too_many" : "unauthenticated"),
                         STRANGERS_COUNTED);
    assert_int_equal(strangers_note(&strangers, &peer, "a code that nobody knows"), STRANGERS_COUNTED);
    const struct stranger *stranger = strangers_next(&strangers, NULL);
    assert_non_null(stranger);
    assert_string_equal(stranger->address, "192.0.2.1");
    assert_int_equal(stranger->counted, 1001);
    assert_int_equal(reason_of(stranger, "too_many"), 250);
    assert_int_equal(reason_of(stranger, "unauthenticated"), 750);
    assert_int_equal(reason_of(stranger, "other"), 1);
    assert_null(strangers_next(&strangers, stranger));
    strangers_clear(&strangers);
    assert_null(strangers_next(&strangers, NULL));
    assert_int_equal(strangers_note(&strangers, &peer, "not_found"), STRANGERS_RECORD);
}

/* However many addresses there are: so many records, and none of the refusals is lost. */
TEST(test_many_addresses)
{
    enum { ADDRESSES = 1000, TIMES = 20 };
    struct strangers strangers = {0};
    char address[32];
    uint64_t recorded = 0;
    uint64_t counted = 0;
    size_t summaries = 0;

    for (int time = 0; time < TIMES; time++) {
        for (int i = 0; i < ADDRESSES; i++) {
            (void)snprintf(address, sizeof address, "10.0.%d.%d", i / 250, i % 250);
            struct peer peer = peer_of(address);
            recorded += strangers_note(&strangers, &peer, "unauthenticated") != STRANGERS_COUNTED;
        }
    }
    const struct stranger *stranger = NULL;
    while ((stranger = strangers_next(&strangers, stranger)) != NULL) {
        counted += stranger->counted;
        summaries++;
    }
    assert_int_equal(recorded, STRANGERS_MAX * STRANGERS_EACH);
    assert_int_equal(summaries, STRANGERS_MAX + 1);
    assert_int_equal(recorded + counted, ADDRESSES * TIMES);
    assert_string_equal(strangers.others.address, "others");
}

TEST(test_one_machine_with_many_addresses)
{
    struct strangers strangers = {0};
    char address[INET6_ADDRSTRLEN];
    size_t recorded = 0;

    for (int i = 1; i <= 100; i++) {
        (void)snprintf(address, sizeof address, "2001:db8:1:2:%x::%x", i, i);
        struct peer peer = peer_of(address);
        recorded += strangers_note(&strangers, &peer, "not_found") != STRANGERS_COUNTED;
    }
    assert_int_equal(recorded, STRANGERS_EACH);
    assert_string_equal(strangers_next(&strangers, NULL)->address, "2001:db8:1:2::/64");
    struct peer neighbour = peer_of("2001:db8:1:3::1");
    struct peer local = {.kind = PEER_UNIX, .uid = 1000};
    assert_int_equal(strangers_note(&strangers, &neighbour, "not_found"), STRANGERS_RECORD);
    assert_int_equal(strangers_note(&strangers, &local, "not_found"), STRANGERS_RECORD);
    assert_int_equal(strangers.count, 3);
}

/* What was not recorded is in the next interval's record, and takes no record of its own from anybody. */
TEST(test_what_was_not_recorded_is_counted_again)
{
    struct strangers strangers = {0};
    struct peer peer = peer_of("192.0.2.1");
    struct stranger one = strangers_one(&peer, "too_many");
    struct stranger others = {.address = "others", .counted = 7};
    char address[32];

    strangers_count_again(&strangers, &others);
    assert_int_equal(strangers.count, 0);
    assert_ptr_equal(strangers_next(&strangers, NULL), &strangers.others);
    strangers_count_again(&strangers, &one);
    strangers_count_again(&strangers, &one);
    const struct stranger *stranger = strangers_next(&strangers, NULL);
    assert_string_equal(stranger->address, "192.0.2.1");
    assert_int_equal(stranger->counted, 2);
    assert_int_equal(reason_of(stranger, "too_many"), 2);
    assert_int_equal(strangers_note(&strangers, &peer, "too_many"), STRANGERS_RECORD);
    for (int i = 0; i < STRANGERS_MAX; i++) {
        (void)snprintf(address, sizeof address, "10.0.0.%d", i);
        peer = peer_of(address);
        one = strangers_one(&peer, "not_found");
        strangers_count_again(&strangers, &one);
    }
    assert_int_equal(strangers.count, STRANGERS_MAX);
    assert_string_equal(strangers.others.address, "others");
    assert_int_equal(strangers.others.counted, 8);
    assert_int_equal(reason_of(&strangers.others, "not_found"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_the_first_are_recorded_the_rest_is_counted),
                                       cmocka_unit_test(test_many_addresses),
                                       cmocka_unit_test(test_one_machine_with_many_addresses),
                                       cmocka_unit_test(test_what_was_not_recorded_is_counted_again)};

    return cmocka_run_group_tests_name("gateway/surface/strangers", tests, NULL, NULL);
}
