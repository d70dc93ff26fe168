#include "airlock/proxy.h"
#include "test.h"

static enum proxy_outcome read_all(struct proxy *proxy, const char *text, size_t piece, size_t *ret_used)
{
    size_t length = strlen(text);
    size_t at = 0;
    enum proxy_outcome outcome = PROXY_MORE;

    proxy_init(proxy);
    while (at < length && outcome == PROXY_MORE) {
        size_t used = 0;
        outcome = proxy_read(proxy, (const uint8_t *)text + at, length - at < piece ? length - at : piece, &used);
        at += used;
    }
    *ret_used = at;
    return outcome;
}

static const struct {
    const char *request;
    enum proxy_outcome outcome;
    const char *name;
    uint16_t port;
    const char *head; /* what the server is sent */
} rows[] = {
    {"CONNECT A.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n", PROXY_ASKED, "a.test", 443, ""},
    {"CONNECT [2001:db8::1]:443 HTTP/1.1\r\nHost: x\r\n\r\n", PROXY_ASKED, "2001:db8::1", 443, ""},
    {"GET http://a.test/x?y=1 HTTP/1.1\r\nHost: a.test\r\nAccept: */*\r\nProxy-Connection: keep-alive\r\n"
     "Proxy-Authorization: Basic eA==\r\nConnection: x-hop\r\nX-Hop: 1\r\n\r\n",
     PROXY_ASKED, "a.test", 80, "GET /x?y=1 HTTP/1.1\r\nHost: a.test\r\nAccept: */*\r\nConnection: close\r\n\r\n"},
    {"POST http://a.test:81 HTTP/1.0\r\nContent-Length: 3\r\nConnection: content-length\r\n\r\n", PROXY_ASKED, "a.test",
     81, "POST / HTTP/1.1\r\nHost: a.test:81\r\nContent-Length: 3\r\nConnection: close\r\n\r\n"},
    {"GET http://a.test?q HTTP/1.1\r\nHost: a.test\r\n\r\n", PROXY_ASKED, "a.test", 80,
     "GET /?q HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n"},
    {"GET http://a.test/ HTTP/1.1\r\nHost: b.test\r\n\r\n", PROXY_BAD, NULL, 0, NULL},
    {"GET http://u@a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", PROXY_BAD, NULL, 0, NULL},
    {"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", PROXY_BAD, NULL, 0, NULL},
    {"GET https://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", PROXY_BAD, NULL, 0, NULL},
    {"CONNECT a.test HTTP/1.1\r\nHost: a.test\r\n\r\n", PROXY_BAD, NULL, 0, NULL},
    {"CONNECT 2130706433:80 HTTP/1.1\r\nHost: a.test\r\n\r\n", PROXY_BAD, NULL, 0, NULL},
    {"CONNECT a.test:443 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n", PROXY_BAD, NULL, 0, NULL},
    {"CONNECT a.test:443 HTTP/1.1\nHost: a\n\n", PROXY_BAD, NULL, 0, NULL},
    {"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n", PROXY_MORE, NULL, 0, NULL},
};

TEST(requests_are_understood_or_not)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        for (size_t piece = 1; piece < 300; piece += 50) {
            struct proxy proxy;
            size_t used = 0;
            assert_row(rows[i].request, read_all(&proxy, rows[i].request, piece, &used) == rows[i].outcome);
            if (rows[i].outcome == PROXY_ASKED) {
                assert_row(rows[i].request, used == strlen(rows[i].request));
                assert_string_equal(proxy.name, rows[i].name);
                assert_int_equal(proxy.port, rows[i].port);
                assert_int_equal(proxy.is_connect, rows[i].head[0] == '\0');
                assert_int_equal(proxy.head.length, strlen(rows[i].head));
                if (proxy.head.length > 0)
                    assert_memory_equal(proxy.head.data, rows[i].head, proxy.head.length);
            }
            if (rows[i].outcome == PROXY_BAD)
                assert_row(rows[i].request, proxy.why[0] != '\0' && proxy.status >= 400);
            proxy_release(&proxy);
        }
    }
}

TEST(a_body_ends_where_it_says)
{
    static const char text[] = "POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: 3\r\n\r\n";
    struct proxy proxy;
    size_t used = 0;

    assert_int_equal(read_all(&proxy, text, 1000, &used), PROXY_ASKED);
    assert_int_equal(proxy_read_body(&proxy, (const uint8_t *)"ab", 2, &used), 0);
    assert_int_equal(used, 2);
    assert_false(proxy.has_ended);
    assert_int_equal(proxy_read_body(&proxy, (const uint8_t *)"cGET /", 6, &used), 0);
    assert_int_equal(used, 1);
    assert_true(proxy.has_ended);
    assert_int_equal(proxy_read_body(&proxy, (const uint8_t *)"GET /", 5, &used), 0);
    assert_int_equal(used, 0);
    proxy_release(&proxy);
}

TEST(broken_chunks_are_refused)
{
    static const char text[] = "POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n";
    struct proxy proxy;
    size_t used = 0;

    assert_int_equal(read_all(&proxy, text, 1000, &used), PROXY_ASKED);
    assert_int_equal(proxy_read_body(&proxy, (const uint8_t *)"2\r\nhi\r\n", 7, &used), 0);
    assert_int_equal(used, 7);
    assert_int_equal(proxy_read_body(&proxy, (const uint8_t *)"zz\r\n", 4, &used), -EBADMSG);
    proxy_release(&proxy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_understood_or_not),
        cmocka_unit_test(a_body_ends_where_it_says),
        cmocka_unit_test(broken_chunks_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
