/* No two records that differ have the same hash, however their fields are cut. */
#include "gateway/store/chain.h"
#include "test.h"

TEST(fields_do_not_run_into_each_other)
{
    static const struct store_audit audits[] = {
        {.number = 1},
        {.number = 2},
        {.number = 1, .time_ms = 1},
        {.number = 1, .time_ms = -1},
        {.number = 1, .principal = ""},
        {.number = 1, .principal = "ab"},
        {.number = 1, .agent = "ab"},
        {.number = 1, .principal = "a", .agent = "b"},
        {.number = 1, .principal = "ab", .agent = ""},
        {.number = 1, .sandbox = "ab"},
        {.number = 1, .exec = "ab"},
        {.number = 1, .action = "ab"},
        {.number = 1, .detail = "ab"},
        {.number = 1, .verdict = STORE_DENIED},
        {.number = 1, .verdict = STORE_FAILED},
        {.number = 1, .with_output = true},
        {.number = 1, .with_output = true, .output_hash = {1}},
        {.number = 1, .previous = {1}},
    };
    uint8_t hashes[COUNT(audits)][STORE_HASH_BYTES];

    for (size_t i = 0; i < COUNT(audits); i++) {
        chain_hash_audit(&audits[i], hashes[i]);
        for (size_t j = 0; j < i; j++)
            assert_memory_not_equal(hashes[i], hashes[j], STORE_HASH_BYTES);
    }
}

/* Logs that are out there must stay valid: what is hashed never changes. */
TEST(the_encoding_stays_as_it_is)
{
    const struct store_audit audit = {.number = 7,
                                      .time_ms = 1700000000123,
                                      .principal = "key_a",
                                      .sandbox = "sb_b",
                                      .action = "exec.end",
                                      .verdict = STORE_DENIED,
                                      .detail = "{}"};
    const struct store_output output = {.stream = 2, .offset = 3, .position = 5, .data = "abc", .length = 3};
    static const uint8_t zeroes[STORE_HASH_BYTES];
    uint8_t hash[STORE_HASH_BYTES];

    static const uint8_t of_audit[] = {0x75, 0x98, 0x93, 0xa9, 0x07, 0x42, 0x92, 0x45, 0x2e, 0xd7, 0xda,
                                       0xc6, 0x0f, 0x2f, 0x1f, 0x35, 0xcd, 0xac, 0x04, 0x1b, 0x99, 0xcf,
                                       0x92, 0x8a, 0x09, 0x99, 0xce, 0xad, 0xcc, 0xb7, 0xd0, 0x4b};
    static const uint8_t of_output[] = {0x56, 0x87, 0x66, 0x14, 0x26, 0xa8, 0xa2, 0x47, 0x51, 0x46, 0x16,
                                        0xd5, 0x58, 0xf9, 0x5a, 0x6d, 0x49, 0x7e, 0x20, 0xb7, 0x77, 0x8d,
                                        0xea, 0x9e, 0xc5, 0x15, 0xa3, 0xc3, 0x3c, 0xb1, 0xc0, 0x29};
    chain_hash_audit(&audit, hash);
    assert_memory_equal(hash, of_audit, sizeof of_audit);
    chain_hash_output(&output, zeroes, hash);
    assert_memory_equal(hash, of_output, sizeof of_output);
}

TEST(output_hangs_on_what_was_before)
{
    struct store_output output = {.stream = 1, .data = "abc", .length = 3};
    uint8_t previous[STORE_HASH_BYTES] = {0};
    uint8_t hashes[5][STORE_HASH_BYTES];

    chain_hash_output(&output, previous, hashes[0]);
    chain_hash_output(&output, hashes[0], hashes[1]);
    output.stream = 2;
    chain_hash_output(&output, previous, hashes[2]);
    output.position = 1;
    chain_hash_output(&output, previous, hashes[3]);
    output.offset = 1;
    chain_hash_output(&output, previous, hashes[4]);
    for (size_t i = 0; i < COUNT(hashes); i++) {
        for (size_t j = 0; j < i; j++)
            assert_memory_not_equal(hashes[i], hashes[j], STORE_HASH_BYTES);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_do_not_run_into_each_other),
        cmocka_unit_test(the_encoding_stays_as_it_is),
        cmocka_unit_test(output_hangs_on_what_was_before),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
