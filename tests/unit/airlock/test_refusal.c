#include "airlock/refusal.h"
#include "test.h"

#include <stdio.h>

TEST(a_page_of_words)
{
    struct buf page = buf_init(REFUSAL_HTTP_MAX);

    assert_int_equal(refusal_http(&page, 403, "no"), 0);
    static const char expected[] = "HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain; charset=utf-8\r\n"
                                   "Content-Length: 10\r\nConnection: close\r\n\r\nHutch: no\n";
    assert_int_equal(page.length, sizeof expected - 1);
    assert_memory_equal(page.data, expected, page.length);
    buf_release(&page);
}

TEST(an_alert)
{
    uint8_t record[REFUSAL_TLS_SIZE];

    refusal_tls(REFUSAL_ACCESS_DENIED, record);
    assert_memory_equal(record, "\x15\x03\x03\x00\x02\x02\x31", sizeof record);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_page_of_words),
        cmocka_unit_test(an_alert),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
