#include "base/parse.h"
#include "test.h"

#define MAX_TEXT "18446744073709551615"
#define KIB UINT64_C(1024)

typedef int parse_function(const char *text, uint64_t *ret_number);

static const struct {
    parse_function *parse;
    const char *text;
    int result;
    uint64_t number;
} rows[] = {
    {parse_u64, "0", 0, 0},
    {parse_u64, "007", 0, 7},
    {parse_u64, MAX_TEXT, 0, UINT64_MAX},
    {parse_u64, "18446744073709551616", -ERANGE, 0},
    {parse_u64, "99999999999999999999999999999999", -ERANGE, 0},
    {parse_u64, "", -EINVAL, 0},
    {parse_u64, "-1", -EINVAL, 0},
    {parse_u64, "+1", -EINVAL, 0},
    {parse_u64, " 1", -EINVAL, 0},
    {parse_u64, "1 ", -EINVAL, 0},
    {parse_u64, "1e30", -EINVAL, 0},
    {parse_u64, "0x10", -EINVAL, 0},
    {parse_u64, "1.0", -EINVAL, 0},

    {parse_size, "0", 0, 0},
    {parse_size, "1", 0, 1},
    {parse_size, "12B", 0, 12},
    {parse_size, "12K", 0, 12 * KIB},
    {parse_size, "12k", 0, 12 * KIB},
    {parse_size, "12KB", 0, 12 * KIB},
    {parse_size, "12KiB", 0, 12 * KIB},
    {parse_size, "12kib", 0, 12 * KIB},
    {parse_size, "3M", 0, 3 * KIB *KIB},
    {parse_size, "3MiB", 0, 3 * KIB *KIB},
    {parse_size, "2G", 0, 2 * KIB *KIB *KIB},
    {parse_size, "2GB", 0, 2 * KIB *KIB *KIB},
    {parse_size, "1T", 0, KIB *KIB *KIB *KIB},
    {parse_size, "1TiB", 0, KIB *KIB *KIB *KIB},
    {parse_size, MAX_TEXT, 0, UINT64_MAX},
    {parse_size, "18014398509481983K", 0, UINT64_MAX - 1023},
    {parse_size, "18014398509481984K", -ERANGE, 0},
    {parse_size, "16777215T", 0, UINT64_C(0xffffff0000000000)},
    {parse_size, "16777216T", -ERANGE, 0},
    {parse_size, "18446744073709551616", -ERANGE, 0},
    {parse_size, "", -EINVAL, 0},
    {parse_size, "M", -EINVAL, 0},
    {parse_size, "-1M", -EINVAL, 0},
    {parse_size, "1e30", -EINVAL, 0},
    {parse_size, "12X", -EINVAL, 0},
    {parse_size, "12MM", -EINVAL, 0},
    {parse_size, "12 M", -EINVAL, 0},
    {parse_size, "1.5G", -EINVAL, 0},
    {parse_size, "12Mi", -EINVAL, 0},

    {parse_duration_ms, "1", 0, 1000},
    {parse_duration_ms, "1ms", 0, 1},
    {parse_duration_ms, "0.001", 0, 1},
    {parse_duration_ms, "0.5s", 0, 500},
    {parse_duration_ms, "1.5m", 0, 90000},
    {parse_duration_ms, "0.001m", 0, 60},
    {parse_duration_ms, "2h", 0, 7200000},
    {parse_duration_ms, "1.2500s", 0, 1250},
    {parse_duration_ms, "18446744073709551ms", 0, UINT64_C(18446744073709551)},
    {parse_duration_ms, "18446744073709552ms", -ERANGE, 0},
    {parse_duration_ms, "18446744073709551.616ms", -ERANGE, 0},
    {parse_duration_ms, "5124095576h", 0, UINT64_C(18446744073600000)},
    {parse_duration_ms, "5124095577h", -ERANGE, 0},
    {parse_duration_ms, "0", -ERANGE, 0},
    {parse_duration_ms, "0.0s", -ERANGE, 0},
    {parse_duration_ms, "0.9ms", -ERANGE, 0},
    {parse_duration_ms, "", -EINVAL, 0},
    {parse_duration_ms, "s", -EINVAL, 0},
    {parse_duration_ms, "-1s", -EINVAL, 0},
    {parse_duration_ms, "1e30", -EINVAL, 0},
    {parse_duration_ms, "12X", -EINVAL, 0},
    {parse_duration_ms, "1S", -EINVAL, 0},
    {parse_duration_ms, "1.s", -EINVAL, 0},
    {parse_duration_ms, ".5s", -EINVAL, 0},
    {parse_duration_ms, "1.0001s", -EINVAL, 0},
    {parse_duration_ms, "1s ", -EINVAL, 0},

    {parse_cpus_milli, "0.001", 0, 1},
    {parse_cpus_milli, "0.5", 0, 500},
    {parse_cpus_milli, "2", 0, 2000},
    {parse_cpus_milli, "2.250", 0, 2250},
    {parse_cpus_milli, "18446744073709551.615", 0, UINT64_MAX},
    {parse_cpus_milli, "18446744073709551.616", -ERANGE, 0},
    {parse_cpus_milli, "18446744073709552", -ERANGE, 0},
    {parse_cpus_milli, "0", -ERANGE, 0},
    {parse_cpus_milli, "0.000", -ERANGE, 0},
    {parse_cpus_milli, "0.0001", -EINVAL, 0},
    {parse_cpus_milli, "1e30", -EINVAL, 0},
    {parse_cpus_milli, "-1", -EINVAL, 0},
    {parse_cpus_milli, "", -EINVAL, 0},
    {parse_cpus_milli, "1,5", -EINVAL, 0},
    {parse_cpus_milli, "12X", -EINVAL, 0},
};

/* An answer is written only on success. */
TEST(test_parse)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        uint64_t number = 4711;
        int r = rows[i].parse(rows[i].text, &number);
        assert_row(rows[i].text, r == rows[i].result);
        assert_row(rows[i].text, number == (r == 0 ? rows[i].number : 4711));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_parse)};
    return cmocka_run_group_tests_name("base/parse", tests, NULL, NULL);
}
