#include "gateway/net/head.h"
#include "test.h"

static const char *write_head(struct head head)
{
    static char text[4096];
    struct buf buf = buf_init(4000);

    assert_int_equal(head_write(&buf, &head), 0);
    memcpy(text, buf.data, buf.length);
    text[buf.length] = '\0';
    buf_release(&buf);
    return text;
}

#define ALWAYS                                                                                                         \
    "X-Request-ID: id\r\nX-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\n"                                 \
    "Content-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\nCache-Control: no-store\r\n"

TEST(whole_heads)
{
    struct head head = {.status = 200,
                        .minor_version = 1,
                        .request_id = "id",
                        .date = "now",
                        .type = "a/b",
                        .framing = HEAD_LENGTH,
                        .length = 12345678901ULL,
                        .keep_alive = true};

    assert_string_equal(write_head(head), "HTTP/1.1 200 OK\r\nDate: now\r\nContent-Type: a/b\r\n"
                                          "Content-Length: 12345678901\r\n" ALWAYS "\r\n");
    head.minor_version = 0;
    head.framing = HEAD_UNTIL_CLOSE;
    head.keep_alive = false;
    head.type = NULL;
    assert_string_equal(write_head(head), "HTTP/1.1 200 OK\r\nDate: now\r\nConnection: close\r\n" ALWAYS "\r\n");
    head.framing = HEAD_CHUNKED;
    head.keep_alive = true;
    assert_string_equal(write_head(head), "HTTP/1.1 200 OK\r\nDate: now\r\nTransfer-Encoding: chunked\r\n"
                                          "Connection: keep-alive\r\n" ALWAYS "\r\n");
    head.framing = HEAD_NO_BODY;
    head.minor_version = 1;
    head.status = 299;
    assert_string_equal(write_head(head), "HTTP/1.1 299 Status\r\nDate: now\r\n" ALWAYS "\r\n");
}

TEST(a_handlers_headers_replace_ours)
{
    struct header headers[] = {{"content-type", "c/d"},         {"x-request-id", "other"},
                               {"X-FRAME-OPTIONS", NULL},       {"Content-Security-Policy", "sandbox"},
                               {"Cache-Control", "max-age=60"}, {"Allow", "GET"}};
    struct head head = {.status = 404,
                        .minor_version = 1,
                        .request_id = "id",
                        .date = "now",
                        .type = "a/b",
                        .headers = headers,
                        .header_count = COUNT(headers),
                        .framing = HEAD_LENGTH,
                        .keep_alive = true};

    assert_string_equal(write_head(head),
                        "HTTP/1.1 404 Not Found\r\nDate: now\r\nContent-Length: 0\r\n"
                        "X-Content-Type-Options: nosniff\r\ncontent-type: c/d\r\nx-request-id: other\r\n"
                        "Content-Security-Policy: sandbox\r\nCache-Control: max-age=60\r\nAllow: GET\r\n\r\n");
}

TEST(the_cap_holds)
{
    struct head head = {.status = 200, .request_id = "id", .date = "now"};
    struct buf buf = buf_init(50);

    assert_int_equal(head_write(&buf, &head), -ENOBUFS);
    buf_release(&buf);
}

TEST(dates)
{
    char date[HEAD_DATE_SIZE];

    head_date(784111777, date);
    assert_string_equal(date, "Sun, 06 Nov 1994 08:49:37 GMT");
    head_date(951827696, date);
    assert_string_equal(date, "Tue, 29 Feb 2000 12:34:56 GMT");
}

TEST(reserved_names)
{
    assert_true(head_is_reserved("content-length"));
    assert_true(head_is_reserved("TRANSFER-ENCODING"));
    assert_true(head_is_reserved("Connection"));
    assert_false(head_is_reserved("Content-Type"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_heads),    cmocka_unit_test(a_handlers_headers_replace_ours),
        cmocka_unit_test(the_cap_holds),  cmocka_unit_test(dates),
        cmocka_unit_test(reserved_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
